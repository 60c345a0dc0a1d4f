package client

import (
	"github.com/posthorn/posthorn/internal/fault"
	"github.com/posthorn/posthorn/wire"
)

// grown notes that n events of a conversation are on disk that were not confirmed yet. Every AckEvery of them are
// confirmed at once, the rest after AckAfter.
func (s *session) grown(c *conv, n int) {
	c.events += n
	switch {
	case c.events >= s.c.cfg.AckEvery:
		s.acks = append(s.acks, c)
	case c.ackDue == nil:
		c.ackDue = s.agenda.add(s.c.cfg.AckAfter, func() {
			c.ackDue = nil
			s.ack(c, false)
		})
	}
}

func (s *session) pumpAcks() {
	for _, c := range s.acks {
		if c.events > 0 {
			s.ack(c, false)
		}
	}
	s.acks = s.acks[:0]
}

// ackAll confirms what is waiting to be, before a connection is left in peace.
func (s *session) ackAll() {
	for _, c := range s.convs {
		if c.ackDue != nil || c.events > 0 {
			s.ack(c, false)
		}
	}
}

// ack confirms what is on disk without a hole, and nothing else is ever confirmed: the number is the cursor that the
// store has committed (D3). Acks carry no rid, so that the server may merge them; one that is lost is asked for again by
// a hint. With asking the reply is waited for, so that a refusal is not overlooked.
func (s *session) ack(c *conv, asking bool) {
	s.agenda.drop(c.ackDue)
	c.events, c.ackDue = 0, nil
	if c.void || !c.known || s.faulty(fault.ClientBeforeAck) {
		return
	}
	f := &wire.Ack{Conv: c.name, Seq: c.rec.Seq}
	if !asking {
		s.write(f)
		return
	}
	s.ask(f, func(f wire.Frame, _ []byte) effect {
		e, ok := f.(*wire.Error)
		if !ok {
			return effect{}
		}
		return effect{then: func() {
			s.refused(e, 0, func() { s.ack(c, true) }, func() { s.heal(c) }, func() {})
		}}
	})
}

func (s *session) ackAsking(c *conv) {
	c.ackAgain = false
	s.ack(c, true)
}

// tookAck notes what the server holds. It never moves a cursor: it may be another install's, or larger than what was
// asked for.
func (s *session) tookAck(f *wire.Acked) {
	s.acked[f.Conv] = f.Delivered
	s.c.cfg.Hooks.acked(f.Conv, f.Delivered)
}
