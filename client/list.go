package client

import (
	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// list subscribes this connection and goes through the user's conversations. What is pushed meanwhile is taken as it
// comes; a conversation that was not listed yet is treated as one that is.
func (s *session) list(after string) { s.listAgain(after, 0) }

func (s *session) listAgain(after string, n int) {
	again := func() { s.listAgain(after, n+1) }
	s.ask(&wire.Sub{After: after, Limit: posthorn.DefaultLimits().PageEvents}, func(f wire.Frame, _ []byte) effect {
		switch f := f.(type) {
		case *wire.Subbed:
			return s.takeList(f)
		case *wire.Error:
			return effect{then: func() {
				giveUp := func() { s.fail(refusal(f)) }
				s.refused(f, n, again, giveUp, giveUp)
			}}
		}
		return effect{then: func() { s.unexpected(f) }}
	})
}

func (s *session) takeList(f *wire.Subbed) effect {
	changed, ahead := make([]bool, len(f.Convs)), make([]bool, len(f.Convs))
	return effect{
		store: func(l *ledger) (err error) {
			for i := range f.Convs {
				frame := wire.Append(nil, &wire.Conv{Entry: f.Convs[i]})
				if changed[i], err = l.t.putEntry(f.Convs[i].Conv, frame); err != nil {
					return err
				}
				if ahead[i], err = l.ahead(&f.Convs[i]); err != nil {
					return err
				}
			}
			return nil
		},
		then: func() {
			for i := range f.Convs {
				s.entry(&f.Convs[i], changed[i], ahead[i])
			}
			if f.Next != "" {
				s.list(f.Next)
				return
			}
			for _, c := range s.convs {
				if c.void { // not in the list of this history
					s.heal(c)
				}
			}
		},
	}
}

func (s *session) takeEntry(e *posthorn.Entry) effect {
	var changed, ahead bool
	return effect{
		store: func(l *ledger) (err error) {
			if changed, err = l.t.putEntry(e.Conv, wire.Append(nil, &wire.Conv{Entry: *e})); err == nil {
				ahead, err = l.ahead(e)
			}
			return err
		},
		then: func() { s.entry(e, changed, ahead) },
	}
}

// ahead tells whether more is held than an entry tells of; what came behind it in the same burst does not count.
func (l *ledger) ahead(e *posthorn.Entry) (bool, error) {
	if c := l.convs[e.Conv]; c != nil {
		return c.known && !c.void && c.rec.Seq > e.Head, nil
	}
	rec, known, err := l.t.cursor(e.Conv)
	return known && !rec.void(l.id) && rec.Seq > e.Head, err
}

// entry decides what a conversation needs: the common past first where its cursor is from another epoch, a sync where
// the list tells more than is held, an ack where the last one was lost.
func (s *session) entry(e *posthorn.Entry, changed, ahead bool) {
	c := s.conv(e.Conv)
	c.head = e.Head
	switch {
	case c.void:
		s.heal(c)
	case c.known && ahead:
		// This device holds more than there is for it: another history, whatever its epoch is called (E1). If it was only
		// quicker than this entry, confirm says so.
		s.heal(c)
	case !c.known || e.Head > c.rec.Seq:
		s.want(c, false)
	case e.Delivered < c.rec.Seq:
		s.grown(c, 0)
	}
	if changed {
		s.c.feeds.publish(Change{Kind: ChangeConv, Conv: e.Conv, Entry: *e})
	}
}
