package client

import (
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
	"github.com/posthorn/posthorn/wire"
)

// burst takes the frame that came and what has come behind it meanwhile, stores all that they bring in one transaction,
// and only then lets them have their consequences: acks, replies, the application's feeds.
func (s *session) burst(first Inbound) {
	s.heard, s.pinged = time.Now(), time.Time{}
	var effects []effect
	for _, in := range s.gather(first) {
		effects = append(effects, s.take(in))
	}
	if l, ok := s.keep(effects); !ok {
		return
	} else if l != nil {
		s.stored(l)
	}
	for _, e := range effects {
		if e.then != nil {
			e.then()
		}
	}
}

func (s *session) gather(first Inbound) []Inbound {
	burst, size := []Inbound{first}, len(first.Raw)
	for len(burst) < burstFrames && size < burstBytes {
		select {
		case in, ok := <-s.conn.Frames():
			if !ok {
				s.fail(s.lost()) // after this burst
				return burst
			}
			burst = append(burst, in)
			size += len(in.Raw)
		default:
			return burst
		}
	}
	return burst
}

// take tells what a frame does. It changes nothing itself: the burst may still be lost.
func (s *session) take(in Inbound) effect {
	switch f := in.Frame.(type) {
	case *wire.Event:
		return effect{events: true, store: func(l *ledger) error { return l.event(f.Prev, &f.Ev, in.Raw) }}
	case *wire.Conv:
		return s.takeEntry(&f.Entry)
	case *wire.Hint:
		return effect{then: func() { s.hinted(f) }}
	case *wire.Typing:
		return effect{then: func() { s.c.feeds.publish(Change{Kind: ChangeTyping, Conv: f.Conv, User: f.User}) }}
	case *wire.Acked:
		e := s.answered(f.RID, f, in.Raw)
		then := e.then
		e.then = func() {
			s.tookAck(f)
			if then != nil {
				then()
			}
		}
		return e
	case *wire.Bye:
		return effect{then: func() {
			s.fail(&posthorn.Error{Code: f.Code, Msg: "the server said bye", Retry: time.Duration(f.ReconnectMS) * time.Millisecond})
		}}
	case *wire.Error:
		if f.RID == "" && f.Code == posthorn.CodeCursorAhead {
			return effect{then: s.compareAll} // it does not say which conversation
		}
		if f.RID == "" {
			s.c.cfg.Logger.Warn("the server refused a frame without a rid", "code", f.Code, "msg", f.Msg)
		}
	}
	return s.answered(ridOf(in.Frame), in.Frame, in.Raw)
}

// keep stores the burst. ok is false where it was lost: then nothing of it has happened.
func (s *session) keep(effects []effect) (l *ledger, ok bool) {
	store, events := false, false
	for _, e := range effects {
		store, events = store || e.store != nil, events || e.events
	}
	if !store {
		return nil, true
	}
	if events && s.faulty(fault.ClientBeforeStore) {
		return nil, false
	}
	began, waiting := time.Now(), s.c.outbox.list((*item).waiting)
	err := s.c.store.update(func(t storeTx) error {
		l = newLedger(t, s.id, s.c.cfg.Start == Beginning())
		l.waiting = waiting
		for _, e := range effects {
			if e.store == nil {
				continue
			}
			if err := e.store(l); err != nil {
				return err
			}
		}
		return l.flush(s.acked)
	}, nil)
	if err != nil {
		s.fail(err) // nothing is confirmed; what was lost here is synced by the next session
		return nil, false
	}
	clear(s.acked)
	if !events {
		return l, true
	}
	s.c.cfg.Tracer.Stored(len(l.applied), time.Since(began))
	return l, !s.faulty(fault.ClientAfterStore)
}

// faulty passes a fault point; true: what comes after it does not happen.
func (s *session) faulty(p fault.Point) bool {
	drop, err := fault.Hit(p)
	if err != nil {
		s.fail(err)
	}
	return drop || err != nil
}

// stored follows a commit: the session's view of the conversations, the application's feeds, acks and syncs.
func (s *session) stored(l *ledger) {
	counts := map[string]int{}
	changes := make([]Change, len(l.applied))
	for i, ev := range l.applied {
		counts[ev.Conv]++
		changes[i] = Change{Kind: ChangeEvent, Conv: ev.Conv, Event: ev}
	}
	for _, lc := range l.order {
		c := s.conv(lc.name)
		if lc.void {
			continue
		}
		c.rec, c.known, c.gap = lc.rec, lc.known, lc.gap()
		if lc.dirty {
			s.grown(c, counts[c.name])
		}
		if c.gap {
			s.want(c, false)
		}
	}
	if len(l.applied) > 0 {
		s.c.cfg.Hooks.applied(l.applied)
	}
	s.c.touched()
	s.c.feeds.publish(changes...)
	s.rewritten(l.found)
}
