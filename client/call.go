package client

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// Write sends a frame as it is. It returns when the frame was handed to the network.
func (c *Conn) Write(f wire.Frame) error {
	b := wire.Append(nil, f)
	if h, ok := f.(*wire.Hello); ok { // the token is nobody's business
		shown := *h
		shown.Token = ""
		c.opts.Tracer.Frame(Out, &shown, nil)
	} else {
		c.opts.Tracer.Frame(Out, f, b)
	}
	return c.WriteRaw(b)
}

// WriteRaw sends bytes as a text message, whatever they are.
func (c *Conn) WriteRaw(b []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.WriteTimeout)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, b); err != nil {
		return fmt.Errorf("client: write: %w", err)
	}
	c.mu.Lock()
	c.wrote = time.Now()
	c.mu.Unlock()
	return nil
}

// lastWrite is when something was last sent.
func (c *Conn) lastWrite() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrote
}

// Call sends a request and waits for its reply; an error reply comes as a *posthorn.Error. A request without a rid gets
// one. The frame is not changed.
func (c *Conn) Call(ctx context.Context, f wire.Frame) (wire.Frame, error) {
	rid, reply := ridOf(f), make(chan wire.Frame, 1)
	c.mu.Lock()
	if rid == "" {
		c.rids++
		rid = "call-" + strconv.FormatInt(c.rids, 10)
		f = withRID(f, rid)
	}
	c.calls[rid] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, rid)
		c.mu.Unlock()
	}()
	if err := c.Write(f); err != nil {
		return nil, err
	}
	select {
	case r := <-reply:
		if e, ok := r.(*wire.Error); ok {
			return nil, refusal(e)
		}
		return r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.done:
		return nil, c.Err()
	}
}

// answer gives a reply to the Call that waits for it, and notes a bye.
func (c *Conn) answer(f wire.Frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := f.(*wire.Bye); ok {
		c.bye = b
	}
	rid := ridOf(f)
	reply := c.calls[rid]
	if rid == "" || reply == nil {
		return false
	}
	delete(c.calls, rid)
	reply <- f
	return true
}

// Hello asks for a session and waits for the welcome.
func (c *Conn) Hello(ctx context.Context, h *wire.Hello) (*wire.Welcome, error) {
	r, err := c.Call(ctx, h)
	if err != nil {
		return nil, err
	}
	w, ok := r.(*wire.Welcome)
	if !ok {
		return nil, fmt.Errorf("client: hello was answered by %s", r.Type())
	}
	return w, nil
}

// refusal makes an error of an error frame.
func refusal(e *wire.Error) *posthorn.Error {
	return &posthorn.Error{Code: e.Code, Msg: e.Msg, Retry: time.Duration(e.RetryMS) * time.Millisecond}
}

// ridOf gives the rid of a frame that has one.
func ridOf(f wire.Frame) string {
	if p := ridField(f); p != nil {
		return *p
	}
	return ""
}

// withRID copies a request and names it.
func withRID(f wire.Frame, rid string) wire.Frame {
	v := reflect.New(reflect.TypeOf(f).Elem())
	v.Elem().Set(reflect.ValueOf(f).Elem())
	g := v.Interface().(wire.Frame)
	if p := ridField(g); p != nil {
		*p = rid
	}
	return g
}

// ridField is where a frame keeps its rid; nil for frames without one.
func ridField(f wire.Frame) *string {
	switch f := f.(type) {
	case *wire.Hello:
		return &f.RID
	case *wire.Confirm:
		return &f.RID
	case *wire.Sub:
		return &f.RID
	case *wire.Send:
		return &f.RID
	case *wire.Ack:
		return &f.RID
	case *wire.Sync:
		return &f.RID
	case *wire.History:
		return &f.RID
	case *wire.Open:
		return &f.RID
	case *wire.Change:
		return &f.RID
	case *wire.Members:
		return &f.RID
	case *wire.Typing:
		return &f.RID
	case *wire.Ping:
		return &f.RID
	case *wire.Welcome:
		return &f.RID
	case *wire.Confirmed:
		return &f.RID
	case *wire.Subbed:
		return &f.RID
	case *wire.Sent:
		return &f.RID
	case *wire.Acked:
		return &f.RID
	case *wire.Page:
		return &f.RID
	case *wire.Opened:
		return &f.RID
	case *wire.MemberList:
		return &f.RID
	case *wire.Pong:
		return &f.RID
	case *wire.Error:
		return &f.RID
	}
	return nil
}
