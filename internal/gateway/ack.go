package gateway

import (
	"context"
	"errors"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
	"github.com/posthorn/posthorn/wire"
)

// ack is an ack with a rid, which gets a reply of its own.
func ack(_ context.Context, r *request, f wire.Frame) {
	a := f.(*wire.Ack)
	if !r.s.submitAck(a, func(delivered int64, err error) {
		if err != nil {
			r.fail(err)
			return
		}
		r.answer(&wire.Acked{RID: r.rid, Conv: a.Conv, Delivered: delivered})
	}) {
		r.forget()
	}
}

// ackMerged is an ack without one. It takes no slot: while the flush is stretched, acks must not hold up sends; the log
// bounds what it gathers. The acked frames of a conversation are merged and wait for the next push, AckedDelay at most.
//
// Errors that end the matter are told even so, since no acked will come, where there is room; for those that pass the
// sweep asks again.
func (s *socket) ackMerged(a *wire.Ack) {
	conv := a.Conv
	s.submitAck(a, func(delivered int64, err error) {
		if err == nil {
			if s.q.answered(conv, delivered) {
				s.g.listDue(s)
			}
			return
		}
		if errors.Is(err, posthorn.ErrUnknown) {
			return
		}
		switch e := s.shown("ack", err); e.Code.Class() {
		case posthorn.Retry:
		case posthorn.SessionTerminal:
			s.end(bye(e.Code))
		default:
			s.push(item{frame: wire.Append(nil, errorFrame("", e)), kind: notice})
		}
	})
}

func (s *socket) submitAck(a *wire.Ack, done func(int64, error)) bool {
	if fault.Drop(fault.GwAck) {
		return false
	}
	s.g.cfg.Hub.Heard(s, a.Conv, a.Seq)
	s.g.cfg.Log.SubmitAck(posthorn.Ack{Viewer: s.session.Viewer, Conv: a.Conv, Seq: a.Seq, Done: done})
	return true
}

// listDue has beat flush the acked frames of a socket.
func (g *Gateway) listDue(s *socket) {
	if g.limits.AckedDelay <= 0 {
		s.q.flushAcked()
		return
	}
	g.mu.Lock()
	g.due = append(g.due, s)
	g.mu.Unlock()
}

// flushDue runs every AckedDelay, so that no acked waits longer.
func (g *Gateway) flushDue() {
	g.mu.Lock()
	due := g.due
	g.due = nil
	g.mu.Unlock()
	for _, s := range due {
		s.q.flushAcked()
	}
}
