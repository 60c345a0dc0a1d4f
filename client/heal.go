package client

import (
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// After a new epoch, or where a cursor lies ahead of the server's history, the device and the server may have different
// pasts. heal finds by confirm the last (seq, mid) that both hold, cuts the local log back to it, confirms that cursor,
// and offers again what this device had sent above it (offer.go). Until then nothing of the conversation is applied,
// confirmed or sent (E1).

// dense is how many of the newest events the first question names one by one: most rewinds are short.
const dense = 32

// probe is the search for the common past of one conversation. Shared events are a prefix of the log: it narrows down
// the seq between the highest known to be shared and the lowest known not to be.
type probe struct {
	low   posthorn.Pair // Seq 0: none is known yet
	high  int64
	top   int64 // what was held when the search began
	floor int64 // the start mark: nothing is held at or below it
	asked []posthorn.Pair
	tries int
}

func (s *session) heal(c *conv) {
	if c.probe != nil {
		return
	}
	c.probe = &probe{high: c.rec.Seq + 1, top: c.rec.Seq, floor: c.rec.Start}
	s.healQ = append(s.healQ, c)
}

func (s *session) pumpHeals() {
	for s.healing < flightConfirms && len(s.healQ) > 0 && s.err == nil {
		c := s.healQ[0]
		s.healQ = s.healQ[1:]
		s.healing++
		s.confirm(c)
	}
}

// wanted names the seqs to ask for next, rising: at first the newest and then ever fewer of the older ones, afterwards
// evenly over what is still open.
func (p *probe) wanted() []int64 {
	bottom := max(p.low.Seq, p.floor) + 1
	if p.asked != nil {
		width, n := p.high-bottom, int64(posthorn.DefaultLimits().ConfirmPairs)
		var seqs []int64
		for i := range min(width, n) {
			seqs = append(seqs, bottom+i*width/min(width, n))
		}
		return seqs
	}
	var back []int64
	for seq, step := p.high-1, int64(1); seq > bottom && len(back) < posthorn.DefaultLimits().ConfirmPairs-1; seq -= step {
		back = append(back, seq)
		if len(back) >= dense {
			step *= 2
		}
	}
	seqs := []int64{bottom}
	for i := len(back) - 1; i >= 0; i-- {
		seqs = append(seqs, back[i])
	}
	return seqs
}

// narrow takes the highest pair of the question that the server holds too, Seq 0 for none; false where it was not asked
// for.
func (p *probe) narrow(held posthorn.Pair) bool {
	if held.Seq == 0 {
		p.high = p.asked[0].Seq
		return true
	}
	for i, a := range p.asked {
		if a != held {
			continue
		}
		p.low = held
		if i+1 < len(p.asked) {
			p.high = p.asked[i+1].Seq
		}
		return true
	}
	return false
}

// confirm asks the next question, or settles the conversation where nothing is left to ask.
func (s *session) confirm(c *conv) {
	p := c.probe
	var pairs []posthorn.Pair
	err := s.c.store.view(func(t storeTx) (err error) {
		pairs, err = t.pairs(c.name, p.wanted(), p.high)
		return err
	})
	if err != nil {
		s.fail(err)
		return
	}
	if len(pairs) == 0 {
		s.settle(c, false)
		return
	}
	p.asked = pairs
	s.ask(&wire.Confirm{Conv: c.name, Pairs: pairs}, func(f wire.Frame, _ []byte) effect {
		return effect{then: func() { s.confirmed(c, f) }}
	})
}

func (s *session) confirmed(c *conv, f wire.Frame) {
	p := c.probe
	switch f := f.(type) {
	case *wire.Confirmed:
		if !p.narrow(posthorn.Pair{Seq: f.Seq, Mid: f.Mid}) {
			s.unexpected(f)
			return
		}
		s.confirm(c)
	case *wire.Error:
		gone := func() { s.settle(c, true) } // this history does not know it, or not with this user in it
		p.tries++
		s.refused(f, p.tries-1, func() { s.confirm(c) }, gone, gone)
	default:
		s.unexpected(f)
	}
}

// settle cuts the conversation back to what both sides hold and lets it live again.
func (s *session) settle(c *conv, gone bool) {
	if p := c.probe; !c.void && !gone && p.top > p.floor && p.low.Seq >= p.top {
		s.sound(c)
		return
	}
	cut := cutBack{id: s.id, conv: c.name, shared: c.probe.low, head: c.head, listed: c.head > 0, gone: gone, sent: c.sent || !c.void}
	if err := s.c.store.update(func(t storeTx) error { return cut.run(t) }, nil); err != nil {
		s.fail(err)
		return
	}
	changed := c.void || cut.rec.Seq != c.rec.Seq || gone
	s.c.cfg.Logger.Info("common past found", "conv", c.name, "seq", cut.rec.Seq, "was", c.rec.Seq, "offered", len(cut.offered), "gone", gone)
	c.rec, c.known, c.gap, c.void, c.probe = cut.rec, cut.known, false, false, nil
	c.events = 0
	s.healing--
	s.offer(cut.offered)
	if changed {
		s.c.feeds.publish(Change{Kind: ChangeReset, Conv: c.name})
		s.c.touched()
	}
	switch {
	case gone:
	case changed:
		s.ack(c, true)  // at once: delivered is void in a new epoch
		s.want(c, true) // beside one that may be under way from above
	default:
		s.wantLater(c, s.c.cfg.Backoff.wait(c.tries)) // the server contradicts itself; not in a hurry
	}
	if ln := s.lanes[c.name]; ln != nil {
		s.runnable(ln)
	}
}

// sound ends a search that found nothing wrong: this device was only quicker than what made it ask. What was applied
// meanwhile stays.
func (s *session) sound(c *conv) {
	c.probe = nil
	s.healing--
	s.wantLater(c, s.c.cfg.Backoff.wait(c.tries)) // for what was asked for meanwhile; not in a hurry, if it is the server that errs
	if ln := s.lanes[c.name]; ln != nil {
		s.runnable(ln)
	}
}

// compareAll reads the list again, which tells the heads of all conversations; not more often than once a second.
func (s *session) compareAll() {
	if time.Since(s.compared) < time.Second {
		return
	}
	s.compared = time.Now()
	s.list("")
}
