package store

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
)

type changeResult struct {
	pid             uint32
	tx              *string
	epoch           int64
	code, why       string
	seq, prev, msgs *int64
	mid, data       *string
	at              *time.Time
	users           []string
}

func (r *changeResult) scan(row pgx.Row) error {
	return row.Scan(&r.pid, &r.tx, &r.epoch, &r.code, &r.why, &r.seq, &r.prev, &r.mid, &r.at, &r.msgs, &r.users, &r.data)
}

// act is the line of the authorisation table that an op is judged by.
func act(op *posthorn.Op) posthorn.Act {
	switch {
	case op.Kind == posthorn.KindJoin:
		return posthorn.ActAdd
	case op.Kind == posthorn.KindMeta:
		return posthorn.ActMeta
	case op.Kind == posthorn.KindLeave && len(op.Users) == 1 && op.Users[0] == op.Sender:
		return posthorn.ActLeave
	}
	return posthorn.ActRemove
}

// change carries out a join, a leave or a new title; false: the conversation stayed locked.
func (s *Store) change(w *writer, op *posthorn.Op, wait time.Duration) bool {
	if err := s.current(op.Epoch); err != nil {
		op.Done(posthorn.Outcome{Err: err})
		return true
	}
	batch := s.tail.begin()
	var r changeResult
	var title, role *string
	if op.Kind == posthorn.KindMeta {
		title = &op.Title
	}
	if op.Role != "" {
		role = (*string)(&op.Role)
	}
	users := op.Users
	if users == nil {
		users = []string{}
	}
	err := w.tx(fault.SendBeforeCommit, s.sql(changeSQL), []any{s.cfg.Gateway, batch, s.channel(), lockText(wait), op.Conv, string(op.Kind), string(act(op)), op.Sender,
		absent0(op.DeviceID), op.AsServer, op.Cmid, users, role, title,
		int64(s.cfg.Limits.GroupMembers), int64(s.cfg.Limits.ChannelMembers)}, r.scan)
	if err != nil {
		s.tail.end(batch, errors.Is(err, posthorn.ErrUnknown))
	}
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == lockNotAvailable:
		return false
	case errors.Is(err, posthorn.ErrUnknown):
		s.stats.unknown.Add(1)
		op.Done(posthorn.Outcome{Err: err})
		return true
	case err != nil:
		op.Done(posthorn.Outcome{Err: s.readError(err)})
		return true
	}
	s.committed(w, batch, r.pid, r.tx, r.epoch)
	if r.code == "" {
		s.out <- delivery{batch, []posthorn.Committed{{Event: r.event(op), Prev: *r.prev, Op: op, Epoch: r.epoch}}}
		return true
	}
	s.tail.end(batch, false)
	switch r.code {
	case "DUP":
		op.Done(posthorn.Outcome{Conv: op.Conv, Seq: *r.seq, Mid: *r.mid, Dup: true, Epoch: r.epoch, At: *r.at})
	default:
		op.Done(posthorn.Outcome{Err: refusal(posthorn.Code(r.code), r.why)})
	}
	return true
}

func (r *changeResult) event(op *posthorn.Op) posthorn.Event {
	return posthorn.Event{Conv: op.Conv, Seq: *r.seq, Kind: op.Kind, Mid: *r.mid, Sender: op.Sender, ViaServer: op.DeviceID == 0, Cmid: op.Cmid,
		Data: []byte(*r.data), At: *r.at, Users: r.users, MsgNo: *r.msgs}
}
