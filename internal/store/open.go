package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
)

// openResult is the row that the function open answers with.
type openResult struct {
	tx, conv, mid, data *string
	code, why           string
	head                *int64
	at                  *time.Time
	users               []string
}

// OpenConversation makes a conversation, or finds the one that the same request made before. It commits like a send: on a
// writer's connection, with the same unknown outcome.
func (s *Store) OpenConversation(ctx context.Context, o posthorn.Open) (posthorn.Opened, error) {
	var w *writer
	select {
	case w = <-s.opener:
		defer func() { s.opener <- w }()
	case <-s.quit:
		return posthorn.Opened{}, unavailable("the server is shutting down", nil)
	case <-ctx.Done():
		return posthorn.Opened{}, unavailable("too many conversations are being opened", ctx.Err())
	}
	members, history := o.Members, o.History
	if members == nil {
		members = []string{}
	}
	if history == "" {
		history = "joined"
	}
	var chosen *string
	if o.Conv != "" {
		chosen = &o.Conv
	}
	batch := s.tail.begin()
	var r openResult
	err := w.tx("", s.sql(openSQL), []any{s.cfg.Gateway, batch, s.channel(), chosen, o.Creator, absent0(o.Device), o.Cmid, string(o.Kind), o.Title, members, history},
		func(row pgx.Row) error {
			return row.Scan(&r.tx, &r.code, &r.why, &r.conv, &r.head, &r.mid, &r.at, &r.users, &r.data)
		})
	defer func() { s.tail.end(batch, errors.Is(err, posthorn.ErrUnknown)) }()
	switch {
	case errors.Is(err, posthorn.ErrUnknown):
		return posthorn.Opened{}, err
	case err != nil:
		return posthorn.Opened{}, s.readError(err)
	}
	switch r.code {
	case "":
		s.committed(w, batch, 0, r.tx, s.Epoch())
		event := []posthorn.Committed{{Epoch: s.Epoch(), Event: posthorn.Event{Conv: *r.conv, Seq: 1, Kind: posthorn.KindOpen, Mid: *r.mid,
			Sender: o.Creator, ViaServer: o.Device == 0, Data: []byte(*r.data), At: *r.at, Users: r.users}}}
		s.witness.saw(event)
		s.cfg.Fanout.Deliver(event)
		return posthorn.Opened{Conv: *r.conv, Head: *r.head}, nil
	case "DUP":
		if o.Creator != "" { // what they may see by now, who may have left since (V1)
			x, err := s.view(ctx, posthorn.Viewer{User: o.Creator}, *r.conv)
			if err != nil {
				return posthorn.Opened{}, err
			}
			r.head = &x.Visible
		}
		return posthorn.Opened{Conv: *r.conv, Head: *r.head, Dup: true}, nil
	}
	return posthorn.Opened{}, refusal(posthorn.Code(r.code), r.why)
}
