package gateway

import (
	"context"
	"errors"
	"os"

	"github.com/coder/websocket"
	"github.com/posthorn/posthorn/internal/fault"
	"github.com/posthorn/posthorn/wire"
)

// keepBuffer is how large a scratch buffer, and how long a line of items, an idle socket may keep.
const keepBuffer = 4 << 10

// writeLoop is the writer: it takes what is queued and writes it in as few system calls as it can, until the end.
func (s *socket) writeLoop() {
	defer s.g.conns.Done()
	defer s.bury()
	var b batch
	for range s.q.wake {
		for s.q.take(&b) {
			err := s.flush(&b)
			s.settle(&b)
			if err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) && b.end == nil {
					s.g.n.slowClosed.Add(1) // nothing can be written to say bye: the last frame may be half out
				}
				return
			}
			if b.end != nil {
				s.sayGoodbye(b.end)
				return
			}
		}
	}
}

// flush writes a batch. Nothing on the wire depends on the order of what was queued beside the line.
func (s *socket) flush(b *batch) error {
	if b.end != nil {
		s.raw.hurry(closeGrace)
	}
	s.raw.cork()
	for i := range b.items {
		if it := &b.items[i]; !s.q.skip(it) && !s.lost(it.kind) {
			s.write(it.frame)
		}
	}
	for conv, n := range b.acked {
		s.writeFrame(b, &wire.Acked{Conv: conv, Delivered: n})
	}
	for _, h := range b.hints {
		s.writeFrame(b, &h)
	}
	if b.pong != nil {
		s.control(opPong, b.pong)
	}
	if b.ping {
		s.control(opPing, nil)
	}
	if b.end != nil && b.end.code != "" {
		s.writeFrame(b, &wire.Bye{Code: b.end.code, ReconnectMS: b.end.reconnect})
	}
	return s.raw.uncork()
}

// lost passes the fault points of a frame. They are passed here and not where frames are queued, so that a delay or a
// hang holds up this socket and not the hub. What was written before is on its way first.
func (s *socket) lost(k kind) bool {
	p := fault.GwPush
	switch k {
	case event:
	case sentReply:
		p = fault.GwReplySend
	default:
		return false
	}
	if !fault.Armed(p) {
		return false
	}
	s.raw.push()
	return fault.Drop(p)
}

// write hands a frame to the library. Errors are kept by rawConn and told by uncork; the background context saves the
// library a timer per message, the deadline is rawConn's.
func (s *socket) write(frame []byte) {
	if s.ws.Write(context.Background(), websocket.MessageText, frame) == nil {
		s.g.n.framesOut.Add(1)
		s.g.n.bytesOut.Add(uint64(len(frame)))
	}
}

func (s *socket) writeFrame(b *batch, f wire.Frame) {
	b.buf = wire.Append(b.buf[:0], f)
	s.write(b.buf)
}

const (
	opPing = 0x89 // FIN and the opcode
	opPong = 0x8a
)

// control writes a control frame past the library, whose Ping waits for the pong and whose pong is written by the reader.
// It cannot fall into the middle of a message, since messages are written by this goroutine only.
func (s *socket) control(op byte, payload []byte) {
	frame := append([]byte{op, byte(len(payload))}, payload...) // at most 125 bytes, which the library has checked
	_, _ = s.raw.Write(frame)
}

// settle gives back room and slots, and what the batch holds.
func (s *socket) settle(b *batch) {
	s.q.wrote(b)
	for i := range b.items {
		if r := b.items[i].req; r != nil {
			r.release()
		}
	}
	clear(b.items)
	b.items, b.hints, b.acked = b.items[:0], nil, nil
	if cap(b.items) > keepBuffer/64 {
		b.items = nil
	}
	if cap(b.buf) > keepBuffer {
		b.buf = nil
	}
}

// sayGoodbye closes: close frame, then at most closeGrace and lingerBytes for the peer's own.
func (s *socket) sayGoodbye(e *ending) {
	if e.status == 0 {
		return
	}
	s.raw.linger()
	_ = s.ws.Close(e.status, e.reason) // the peer may be gone
}

func (s *socket) bury() {
	s.q.close()
	s.cancel()
	s.raw.abort()
	_ = s.ws.CloseNow()
	close(s.done)
	s.g.remove(s)
}
