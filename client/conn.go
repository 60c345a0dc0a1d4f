package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// Inbound is a frame from the server with the bytes in which it came.
type Inbound struct {
	Frame wire.Frame
	Raw   []byte
}

// Conn is one connection that speaks the protocol and nothing more: no store, no retries, no acks. The Client is built
// on it; tests and the lab use it to say what no client would say. All methods may be called at the same time.
//
// Frames must be read, or else replies to Call stop too once its buffer is full.
type Conn struct {
	ws      *websocket.Conn
	opts    DialOptions
	stop    context.CancelFunc // ends reading at once
	frames  chan Inbound       // closed by read
	done    chan struct{}      // closed by read after frames
	closing sync.Once

	mu    sync.Mutex // guards what follows
	calls map[string]chan wire.Frame
	rids  int64
	wrote time.Time
	bye   *wire.Bye
	err   error
}

// read is the connection's reader goroutine. It ends with the connection.
func (c *Conn) read(ctx context.Context) {
	defer close(c.done)
	defer close(c.frames)
	defer c.stop()
	err := c.readAll(ctx)
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	_ = c.ws.CloseNow()
}

func (c *Conn) readAll(ctx context.Context) error {
	for {
		typ, raw, err := c.ws.Read(ctx)
		if err != nil {
			return err
		}
		if typ != websocket.MessageText {
			return errors.New("client: the server sent a binary message")
		}
		f, err := wire.DecodeServer(raw)
		if err != nil {
			f = undecoded(err)
		}
		c.opts.Tracer.Frame(In, f, raw)
		if c.answer(f) {
			continue
		}
		select {
		case c.frames <- Inbound{f, raw}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// undecoded stands for a frame that was not understood. A reply becomes a failed one; anything else counts as lost, which
// for an event the next one's prev will tell.
func undecoded(err error) wire.Frame {
	if fe := (*wire.FrameError)(nil); errors.As(err, &fe) && fe.RID != "" {
		return &wire.Error{RID: fe.RID, Code: posthorn.CodeInternal, Msg: "the reply was not understood: " + err.Error()}
	}
	return &wire.Unknown{T: "?"}
}

// Frames gives what the server sends, replies to Call excepted. It is closed when the connection has ended; Err then
// tells why.
func (c *Conn) Frames() <-chan Inbound { return c.frames }

// Err tells why the connection ended: a *posthorn.Error where the server said bye, nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	code := byeCode(c.bye, websocket.CloseStatus(c.err))
	if code == "" {
		return fmt.Errorf("client: connection: %w", c.err)
	}
	e := &posthorn.Error{Code: code, Msg: "the server said bye", Err: c.err}
	if c.bye != nil {
		e.Retry = time.Duration(c.bye.ReconnectMS) * time.Millisecond
	}
	return e
}

// byeCode is what the server said, or where its bye was lost, what the close status means.
func byeCode(b *wire.Bye, status websocket.StatusCode) posthorn.Code {
	if b != nil {
		return b.Code
	}
	for _, code := range []posthorn.Code{posthorn.CodeReplaced, posthorn.CodeSlowConsumer, posthorn.CodeShuttingDown, posthorn.CodeStaleInstall,
		posthorn.CodeUnauthenticated, posthorn.CodeNewEpoch} {
		if int(status) == code.ByeStatus() {
			return code
		}
	}
	return ""
}

// ended closes the connection and tells why it ended: what the server said about it, even where something of ours failed
// first, as a write does on a connection that the server has closed. What was not read yet is passed over.
func (c *Conn) ended(err error) error {
	go func() {
		for range c.frames { // else a goodbye behind many frames would not be read; ends with the reader
		}
	}()
	_ = c.Close()
	if said := (*posthorn.Error)(nil); errors.As(c.Err(), &said) {
		return said
	}
	return err
}

// Close ends the connection with a handshake of at most a second and waits for the reader. Legal twice.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		hurry := time.AfterFunc(time.Second, c.stop)
		defer hurry.Stop()
		_ = c.ws.Close(websocket.StatusNormalClosure, "")
		c.stop()
	})
	<-c.done
	return nil
}
