package gateway

import (
	"context"

	"github.com/coder/websocket"
	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// pageReads bounds the requests of one socket that read from the database or hold a page that waits to be written.
const pageReads = 4

// socket is one connection. See doc.go for who owns what.
type socket struct {
	g      *Gateway
	ws     *websocket.Conn
	raw    *rawConn
	ctx    context.Context // of its requests
	cancel context.CancelFunc
	q      queue
	done   chan struct{} // closed by the writer at the very end

	slots chan struct{} // one per request in flight, until its reply is written
	pages chan struct{} // see pageReads

	session posthorn.Session // set by the reader before Hub.Register
	live    liveness
	sub     subscription
}

func newSocket(g *Gateway) *socket {
	s := &socket{
		g: g, done: make(chan struct{}),
		slots: make(chan struct{}, max(1, g.limits.InFlight)), pages: make(chan struct{}, pageReads),
		sub: subscription{turn: make(chan struct{}, 1)},
	}
	s.q.init(g.limits.OutFrames, g.limits.OutBytes)
	s.ctx, s.cancel = context.WithCancel(g.ctx)
	return s
}

var _ posthorn.Socket = (*socket)(nil)

// Viewer of the session.
func (s *socket) Viewer() posthorn.Viewer { return s.session.Viewer }

// PushEvent queues an encoded event frame; false: the queue is full, or the connection has ended.
func (s *socket) PushEvent(frame []byte, conv string, seq int64) bool {
	return s.push(item{frame: frame, kind: event, conv: conv, seq: seq})
}

// PushConv queues a conv frame.
func (s *socket) PushConv(e posthorn.Entry) bool {
	return s.push(item{frame: wire.Append(nil, &wire.Conv{Entry: e}), kind: notice, conv: e.Conv, seq: e.Head})
}

func (s *socket) push(it item) bool {
	ok := s.q.push(it)
	if !ok {
		s.g.n.pushesDropped.Add(1)
	}
	return ok
}

// PushTyping takes what room there is, and nothing is made up for where there is none.
func (s *socket) PushTyping(conv, user string) bool {
	return !s.q.asleep.Load() && s.q.push(item{frame: wire.Append(nil, &wire.Typing{Conv: conv, User: user}), kind: notice})
}

// PushHint always finds room while the connection lives: hints wait beside the queue, one per conversation.
func (s *socket) PushHint(conv string, head, rv int64, why string) bool {
	return s.q.hint(wire.Hint{Conv: conv, Head: head, RV: rv, Why: why})
}

// Close says bye and ends the connection; pushes that wait are dropped, replies that wait are written first.
func (s *socket) Close(code posthorn.Code) { s.end(bye(code)) }

// part asks the writer to end the connection once its writing requests are answered.
func (s *socket) part(e ending) {
	if s.q.part(e) {
		s.raw.hurry(closeGrace) // it may be in the midst of a long wait for a slow reader
	}
}

// end asks the writer to end the connection; the first ending counts.
func (s *socket) end(e ending) {
	if s.q.end(e) {
		s.raw.hurry(closeGrace)
	}
}
