package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// handler is a line of the table of requests. run ends its request, now or later from another goroutine.
type handler struct {
	run   func(ctx context.Context, r *request, f wire.Frame)
	slow  bool // may wait for the database: has a goroutine of its own
	write bool // a drain waits for its answer
	must  bool // answered even without rid
	free  bool // also while draining
	calm  bool // also while suspended: it needs no database
}

// handlers is the table. A t that is not in it is BAD_FRAME, a second hello too.
var handlers = map[string]handler{
	"send":    {run: send, write: true},
	"add":     {run: change, write: true},
	"remove":  {run: change, write: true},
	"leave":   {run: change, write: true},
	"open":    {run: open, slow: true, write: true},
	"ack":     {run: ack, free: true},
	"sub":     {run: sub, slow: true},
	"sync":    {run: syncPage, slow: true},
	"history": {run: history, slow: true},
	"members": {run: members, slow: true},
	"confirm": {run: confirm, slow: true},
	"typing":  {run: typing},
	"ping":    {run: ping, must: true, free: true, calm: true},
}

// authorize admits one frame and starts what it asks for; false: the reader stops. What the sender may do in a
// conversation is judged where the conversation is locked, in the store.
func (s *socket) authorize(f wire.Frame, bad error) bool {
	t, rid := name(f, bad)
	if bad != nil {
		return s.reject(t, rid, bad)
	}
	h, ok := handlers[t]
	if !ok {
		return s.reject(t, rid, posthorn.Errorf(posthorn.CodeBadFrame, "%s is not a request, or not at this time", t))
	}
	if a, isAck := f.(*wire.Ack); isAck && rid == "" {
		if !s.q.asleep.Load() { // else the sweep asks again
			s.ackMerged(a)
		}
		return true
	}
	r, v := s.begin(t, rid, h)
	switch v {
	case over:
		return s.alive()
	case refuse:
		r.fail(&posthorn.Error{Code: posthorn.CodeUnavailable, Msg: "this gateway is shutting down", Retry: time.Second})
		return true
	case suspend:
		r.fail(away())
		return true
	}
	if !h.slow {
		h.run(s.ctx, r, f)
		return true
	}
	s.g.conns.Go(func() { // legal: the reader itself is counted
		defer r.forget()
		h.run(s.ctx, r, f)
	})
	return true
}

// reject answers a frame that names no request, whether it has a rid or not. It takes a slot like any other, so that a
// client that only sends rubbish and never reads is not read for ever.
func (s *socket) reject(t, rid string, err error) bool {
	r, v := s.begin(t, rid, handler{must: true, free: true, calm: true})
	if v == over {
		return s.alive()
	}
	r.fail(err)
	return true
}

// begin takes a slot, waiting for one where all are in flight: that is how reading pauses. The request is nil where the
// verdict is over.
func (s *socket) begin(t, rid string, h handler) (*request, verdict) {
	select {
	case s.slots <- struct{}{}:
	default:
		s.live.pause()
		select {
		case s.slots <- struct{}{}:
			s.live.resume(s.raw)
		case <-s.done:
			return nil, over
		}
	}
	r := &request{s: s, t: t, rid: rid, must: h.must, write: h.write}
	v := s.q.begin(h.write, h.free, h.calm)
	switch v {
	case over:
		<-s.slots
		return nil, over
	case refuse, suspend:
		r.write = false // not counted
	}
	return r, v
}

// alive tells whether the reader goes on, throwing away what comes until the peer's close frame.
func (s *socket) alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// name gives what is known of a frame, be it one that could not be decoded.
func name(f wire.Frame, bad error) (t, rid string) {
	var fe *wire.FrameError
	switch {
	case errors.As(bad, &fe):
		return fe.T, fe.RID
	case bad != nil:
		return "", ""
	}
	return f.Type(), ridOf(f)
}

// typing is passed on or lost, and never answered.
func typing(_ context.Context, r *request, f wire.Frame) {
	if conv := f.(*wire.Typing).Conv; r.s.g.cfg.Hub.MayType(r.s, conv) {
		r.s.g.cfg.Log.Typing(conv, r.s.session.Viewer.User)
	}
	r.forget()
}

func ping(_ context.Context, r *request, _ wire.Frame) { r.answer(&wire.Pong{RID: r.rid}) }
