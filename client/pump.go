package client

import (
	"slices"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// lane is what is sent one after the other: the items of a conversation, lowest number first. The next one goes when the
// one before was answered for good; lanes go beside each other.
type lane struct {
	name   string
	keys   []uint64 // rising; the first is the one under way where busy
	busy   bool
	queued bool // stands in ready
	tries  int  // refusals of the first one, for the moment
	later  *task
}

// ridRoom is what a rid adds to a frame.
const ridRoom = 40

// takeItems brings what is new in the outbox into its lanes; at a session's start that is everything.
func (s *session) takeItems(all bool) {
	for _, x := range s.c.outbox.takeFresh(all) {
		name := x.lane()
		ln := s.lanes[name]
		if ln == nil {
			ln = &lane{name: name}
			s.lanes[name] = ln
		}
		first := 0
		if ln.busy { // an item offered again may have a lower number than the one under way
			first = 1
		}
		at, there := slices.BinarySearch(ln.keys[first:], x.key)
		if there || ln.busy && ln.keys[0] == x.key {
			continue
		}
		ln.keys = slices.Insert(ln.keys, first+at, x.key)
		s.runnable(ln)
	}
}

// runnable queues a lane that may send.
func (s *session) runnable(ln *lane) {
	if !ln.busy && !ln.queued && ln.later == nil && len(ln.keys) > 0 {
		ln.queued = true
		s.ready = append(s.ready, ln)
	}
}

func (s *session) pumpItems() {
	for s.flying < flightItems && len(s.ready) > 0 && s.err == nil {
		ln := s.ready[0]
		s.ready = s.ready[1:]
		ln.queued = false
		if c := s.convs[ln.name]; c != nil && (c.void || c.probe != nil) {
			continue // what was sent before a rewind goes first; settled queues the lane again
		}
		s.launch(ln)
	}
}

// launch sends the first item of a lane that is still to be sent.
func (s *session) launch(ln *lane) {
	for len(ln.keys) > 0 {
		key := ln.keys[0]
		it := s.c.outbox.get(key)
		if it == nil { // failed, waiting, or gone
			ln.keys = ln.keys[1:]
			continue
		}
		if limit := s.w.MaxFrame; limit > 0 && int64(len(wire.Append(nil, it.frame("")))+ridRoom) > limit {
			s.failItem(key, it, posthorn.Errorf(posthorn.CodeTooLarge, "the frame is larger than the server's %d bytes", limit))
			ln.keys = ln.keys[1:]
			continue
		}
		s.fly(ln, key, it)
		return
	}
	s.forgetLane(ln)
}

// fly sends an item. Where no answer comes in time ask sends it again on the same connection with the same cmid: the
// server tells a duplicate (D2).
func (s *session) fly(ln *lane, key uint64, it *item) {
	ln.busy = true
	s.flying++
	s.ask(it.frame(""), func(f wire.Frame, _ []byte) effect { return s.answer(ln, key, it, f) })
}

// forgetLane drops a lane that has nothing to send.
func (s *session) forgetLane(ln *lane) {
	if len(ln.keys) == 0 && !ln.busy && !ln.queued {
		delete(s.lanes, ln.name)
	}
}

func (s *session) land(ln *lane) {
	ln.busy = false
	s.flying--
}

// next takes the first item of a lane as done and lets the one behind it go.
func (s *session) next(ln *lane) {
	s.land(ln)
	ln.keys, ln.tries = ln.keys[1:], 0
	s.runnable(ln)
	s.forgetLane(ln)
}

// repeat lets the first item of a lane go again after a while; those behind it wait.
func (s *session) repeat(ln *lane, e *wire.Error) {
	s.land(ln)
	ln.later = s.agenda.add(s.retryAfter(e, ln.tries), func() {
		ln.later = nil
		s.runnable(ln)
	})
	ln.tries++
}
