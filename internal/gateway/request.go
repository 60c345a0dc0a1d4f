package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// request is one admitted frame. It holds a slot of its socket and is ended exactly once, by answer, fail or forget; the
// slot is given back when the reply has been written, or at once where there is none. None of them blocks.
type request struct {
	s     *socket
	t     string
	rid   string
	must  bool // answered even without rid
	write bool // a drain waits for its answer
	page  bool // holds one of the socket's page reads
	ended atomic.Bool
}

// answer queues the reply. Without rid there is none, see docs/protocol.md.
func (r *request) answer(f wire.Frame) {
	if r.ended.Swap(true) {
		return
	}
	it := item{req: r}
	if r.rid != "" || r.must {
		it.frame = wire.Append(nil, f)
		if _, sent := f.(*wire.Sent); sent && r.t == "send" {
			it.kind = sentReply
		}
	}
	if !r.s.q.finish(it) {
		r.release()
	}
}

// forget ends the request without a reply: the client's own timeout finds out.
func (r *request) forget() {
	if r.ended.Swap(true) {
		return
	}
	r.s.q.finish(item{req: r})
	r.release()
}

// fail answers with an error. An unknown outcome is not answered (D1); an error that voids the session ends the
// connection after it. It returns the code that was told.
func (r *request) fail(err error) posthorn.Code {
	if errors.Is(err, posthorn.ErrUnknown) {
		r.forget()
		return ""
	}
	e := r.s.shown(r.t, err)
	r.answer(errorFrame(r.rid, e))
	if e.Code.Class() == posthorn.SessionTerminal {
		r.s.end(bye(e.Code))
	}
	return e.Code
}

func (r *request) release() {
	if r.page {
		<-r.s.pages
	}
	<-r.s.slots // never waits: this request holds one
}

// room waits for one of the socket's page reads; false: the connection ended first.
func (r *request) room(ctx context.Context) bool {
	select {
	case r.s.pages <- struct{}{}:
		r.page = true
		return true
	case <-ctx.Done():
		return false
	}
}

// shown is what a client may see of an error. INTERNAL ones are told to the operator instead.
func (s *socket) shown(t string, err error) *posthorn.Error {
	var coded *posthorn.Error
	if !errors.As(err, &coded) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: "not answered in time", Retry: time.Second, Err: err}
	}
	e := posthorn.AsError(err)
	if e.Code == posthorn.CodeInternal {
		s.g.n.internalErrors.Add(1)
		v := s.session.Viewer
		s.g.report(slog.LevelError, "a request failed", "t", clip(t, 32), "user", v.User, "device", v.Device, "err", err)
	}
	if e.Code == posthorn.CodeUnavailable && e.Retry <= 0 {
		e = &posthorn.Error{Code: e.Code, Msg: e.Msg, Retry: time.Second, Err: e.Err}
	}
	return e
}

func errorFrame(rid string, e *posthorn.Error) *wire.Error {
	return &wire.Error{RID: rid, Code: e.Code, Msg: e.Msg, RetryMS: e.Retry.Milliseconds()}
}

// ridOf gives the rid of a client's frame.
func ridOf(f wire.Frame) string {
	switch f := f.(type) {
	case *wire.Hello:
		return f.RID
	case *wire.Confirm:
		return f.RID
	case *wire.Sub:
		return f.RID
	case *wire.Send:
		return f.RID
	case *wire.Ack:
		return f.RID
	case *wire.Sync:
		return f.RID
	case *wire.History:
		return f.RID
	case *wire.Open:
		return f.RID
	case *wire.Change:
		return f.RID
	case *wire.Members:
		return f.RID
	case *wire.Ping:
		return f.RID
	case *wire.Typing:
		return f.RID
	}
	return ""
}
