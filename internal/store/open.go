package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
)

// OpenConversation makes a conversation, or finds the one that the same request made before.
func (s *Store) OpenConversation(ctx context.Context, o posthorn.Open) (posthorn.Opened, error) {
	batch := s.tail.begin()
	var (
		tx, conv, mid, data *string
		code, why           string
		head                *int64
		at                  *time.Time
		users               []string
	)
	members := o.Members
	if members == nil {
		members = []string{}
	}
	history := o.History
	if history == "" {
		history = "joined"
	}
	var chosen *string
	if o.Conv != "" {
		chosen = &o.Conv
	}
	err := pgx.BeginFunc(ctx, s.pool, func(t pgx.Tx) error {
		if s.syncLow.Load() {
			if _, err := t.Exec(ctx, "set local synchronous_commit = on"); err != nil {
				return err
			}
		}
		return t.QueryRow(ctx, s.sql(openSQL), s.cfg.Gateway, batch, s.cfg.Channel, chosen, o.Creator, absent0(o.Device), o.Cmid,
			string(o.Kind), o.Title, members, history).Scan(&tx, &code, &why, &conv, &head, &mid, &at, &users, &data)
	})
	s.tail.end(batch, err != nil)
	if err != nil {
		// Whatever happened, the same cmid finds out.
		if e := readError(err); !errors.Is(e, posthorn.ErrUnknown) {
			return posthorn.Opened{}, e
		}
		return posthorn.Opened{}, err
	}
	switch code {
	case "":
		s.cfg.Fanout.Deliver(delivery{{Epoch: s.epoch.Load(), Event: posthorn.Event{Conv: *conv, Seq: 1, Kind: posthorn.KindOpen, Mid: *mid,
			Sender: o.Creator, ViaServer: o.Device == 0, Cmid: o.Cmid, Data: []byte(*data), At: *at, Users: users}}})
		return posthorn.Opened{Conv: *conv, Head: *head}, nil
	case "DUP":
		return posthorn.Opened{Conv: *conv, Head: *head, Dup: true}, nil
	}
	return posthorn.Opened{}, refusal(posthorn.Code(code), why)
}
