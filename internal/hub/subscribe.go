package hub

import (
	"context"
	"fmt"

	"github.com/posthorn/posthorn"
)

// maxTries bounds how often a sub reads its views, when what happens meanwhile makes them useless.
const maxTries = 5

// Subscribe registers a connection for all conversations of its device and reads their views in one call. From then on
// its events are buffered; they flow once activate is called, after the gateway has queued subbed. So nothing is lost
// between the two, and nothing is pushed before subbed. Again on the same connection it begins anew: the activate of the
// older call is void, and if it fails, a connection that was active goes on as it was.
//
// Until activate, or Unregister, `sent` replies of the connection wait too, since they keep their place among the pushes.
func (h *Hub) Subscribe(ctx context.Context, s posthorn.Socket) (activate func(), err error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for other subs: %w", ctx.Err())
	}
	c, w, err := h.begin(s)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		views, err := h.cfg.Loader.LoadDevice(ctx, c.viewer)
		if err != nil {
			h.abandon(c, w)
			return nil, fmt.Errorf("load the conversations of a device: %w", err)
		}
		again, err := h.adopt(c, w, views, try == maxTries)
		if err != nil {
			return nil, err
		}
		if !again {
			return func() { h.activate(c, w.turn) }, nil
		}
	}
}

// window is a sub whose views are being read: what is fanned out meanwhile is remembered for it.
type window struct {
	turn  uint64
	start int64 // the first event in recent that came after it was opened
}

// begin buffers from now on. The order matters: what is committed after the views' snapshot is delivered after this.
func (h *Hub) begin(s posthorn.Socket) (*conn, *window, error) {
	h.lock()
	defer h.unlock()
	c := h.conn(s)
	switch {
	case h.stopped:
		return nil, nil, posthorn.Errorf(posthorn.CodeUnavailable, "the server is shutting down")
	case c == nil:
		return nil, nil, posthorn.Errorf(posthorn.CodeReplaced, "the connection has ended or was replaced")
	}
	c.turn++
	c.phase = loads
	if c.pend == nil {
		c.pend = &pending{}
	}
	h.joinUser(c)
	return c, h.recent.open(c.turn), nil
}

// abandon gives a sub up: a connection that was active before goes on as it was.
func (h *Hub) abandon(c *conn, w *window) {
	h.lock()
	defer h.unlock()
	h.recent.close(h, w)
	h.fallBack(c, w.turn)
}

func (h *Hub) fallBack(c *conn, turn uint64) {
	switch {
	case c.turn != turn:
	case c.live:
		h.flush(c)
	default:
		h.leaveUser(c)
	}
}

func (h *Hub) activate(c *conn, turn uint64) {
	h.lock()
	defer h.unlock()
	if c.turn == turn && c.phase == waits {
		c.live = true
		h.flush(c)
	}
}
