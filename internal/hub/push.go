package hub

import "github.com/posthorn/posthorn"

// push gives a frame to an active connection. Where its queue is full the frame is lost to it, and a hint says so at once
// (B1); the conversation lags already.
func (h *Hub) push(c *conn, conv string, seq int64, frame []byte, visible int64) {
	if c.marks != nil {
		if mk := c.marks[conv]; mk.owed != nil {
			if !c.sock.PushConv(*mk.owed) {
				h.overflow(c, conv, visible)
				return
			}
			mk.owed = nil
			c.mark(conv, mk)
		}
	}
	if !c.sock.PushEvent(frame, conv, seq) {
		h.overflow(c, conv, visible)
	}
}

// tell gives a conv frame to an active connection, or later, but always before an event of that conversation.
func (h *Hub) tell(c *conn, e *posthorn.Entry) {
	mk := c.marks[e.Conv]
	mk.owed = nil
	if !c.sock.PushConv(*e) {
		mk.owed = e
		h.overflow(c, e.Conv, e.Head)
	}
	c.mark(e.Conv, mk)
}

func (h *Hub) overflow(c *conn, conv string, visible int64) {
	h.n.overflows++
	h.hint(c, conv, max(visible, c.lag[conv].head), "overflow")
}

// hint says that the device is behind. The read state's version joins with the issue that builds it.
func (h *Hub) hint(c *conn, conv string, visible int64, why string) {
	h.n.hints++
	c.sock.PushHint(conv, visible, 0, why)
}

// origin is the connection that gets the answer in place of a push; nil: it is not one of this process, or has gone.
func (h *Hub) origin(it *item) *conn {
	if it.origin == nil {
		return nil
	}
	return h.conn(it.origin)
}

// answer calls the op's Done. A connection that is not active yet gets it in its place among what waits for it.
func (h *Hub) answer(origin *conn, it *item) {
	op := it.op
	if op == nil {
		return
	}
	it.op = nil
	if op.Done == nil {
		return
	}
	out := posthorn.Outcome{Conv: it.ev.Conv, Seq: it.ev.Seq, Prev: it.prev, Mid: it.ev.Mid, Epoch: it.epoch, At: it.ev.At}
	if origin != nil && origin.user != nil && origin.phase != active {
		origin.pend.done(op, out)
		return
	}
	op.Done(out)
}

// reply answers the op of an event whose turn has come, unless its sender is not known in the conversation and is reading
// their views just now: then it waits with the event, see recent.
func (h *Hub) reply(cv *conv, it *item) {
	if it.op == nil {
		return
	}
	c := h.origin(it)
	if u := h.users[it.op.Sender]; u != nil && u.members[cv] != nil {
		h.answer(c, it)
	} else if c == nil || c.phase != loads {
		h.answerStray(it)
	}
}

func (h *Hub) answerAll(items []item) {
	for i := range items {
		it := &items[i]
		h.answer(h.origin(it), it)
	}
}
