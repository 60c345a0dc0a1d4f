package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"github.com/coder/websocket"
	"github.com/posthorn/posthorn/wire"
)

// keepMessage is how large a message buffer may be to be used again.
const keepMessage = 64 << 10

var errBinary = errors.New("binary message")

// readLoop is the reader: login, then frame after frame until the connection ends.
func (s *socket) readLoop() {
	defer s.g.conns.Done()
	if !s.login() {
		return
	}
	s.g.n.sessions.Add(1)
	defer s.g.n.sessions.Add(-1)
	s.live.watch()
	s.g.cfg.Hub.Register(s)
	defer s.leave()
	s.g.cfg.Log.Registered(s.session)
	for first := true; ; first = false {
		f, bad, err := s.read()
		if err != nil {
			s.end(readFailed(err))
			return
		}
		if first {
			s.g.cfg.Log.FirstFrame(s.session) // whatever it says: the client has stored its nonce
		}
		if !s.authorize(f, bad) {
			return
		}
	}
}

// leave unregisters when no sub can be with the hub any more, or the hub would keep a socket that has gone.
func (s *socket) leave() {
	s.cancel()
	s.sub.turn <- struct{}{} // waits for the one under way, whose context has ended; never given back
	s.g.cfg.Hub.Unregister(s)
}

// messages are buffers for one message each. A socket holds one only while a message arrives, an idle socket none.
var messages = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// read gives the next frame, or what is wrong with it. The background context saves the library a timer per call:
// deadlines are rawConn's, and the writer ends the reading by closing the connection.
func (s *socket) read() (f wire.Frame, bad, err error) {
	typ, r, err := s.ws.Reader(context.Background())
	if err != nil {
		return nil, nil, err
	}
	if typ != websocket.MessageText {
		return nil, nil, errBinary
	}
	b := messages.Get().(*bytes.Buffer)
	defer func() {
		if b.Cap() <= keepMessage {
			messages.Put(b)
		}
	}()
	b.Reset()
	if _, err := b.ReadFrom(r); err != nil {
		return nil, nil, err
	}
	s.g.n.framesIn.Add(1)
	f, bad = wire.Decode(b.Bytes(), s.g.limits) // shares no memory with the buffer
	return f, bad, nil
}

// readFailed says how a connection ends that cannot be read on:
//
//	the peer closed, or the connection is gone     nothing is written
//	message longer than FrameIn                    1009; the library has written the close frame
//	binary message                                 1003: the protocol is text, and an error frame would invite a retry
//	silence until the login deadline               1008, without bye: the session is not to blame
//	broken framing or compression                  1002
func readFailed(err error) ending {
	switch {
	case websocket.CloseStatus(err) != -1, errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF):
		return ending{}
	case errors.Is(err, websocket.ErrMessageTooBig):
		return closing(websocket.StatusMessageTooBig, "message too big")
	case errors.Is(err, errBinary):
		return closing(websocket.StatusUnsupportedData, "text messages only").after(keepReplies)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return closing(websocket.StatusPolicyViolation, "no hello in time").after(keepReplies)
	}
	var broken net.Error
	if errors.As(err, &broken) {
		return ending{}
	}
	return closing(websocket.StatusProtocolError, "protocol error")
}

// pinged has the writer answer a ping of the peer, the newest one where they come faster than they are answered (RFC
// 6455, 5.5.3). The library must not: its pong would make the reader wait for a slow line, and give up.
func (s *socket) pinged(_ context.Context, payload []byte) bool {
	s.q.control(false, append([]byte{}, payload...))
	return false
}
