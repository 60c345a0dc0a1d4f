package hub

import (
	"time"

	"github.com/posthorn/posthorn"
)

// The lag set holds, per connection, the conversations in which the visible head that was told or pushed lies above what
// the device has acked, and nothing else: its cost follows what lags, not devices times conversations (D5).

// lagging is an entry of it.
type lagging struct {
	head  int64         // visible head
	acked int64         // newest ack that was heard since the lag began
	since time.Duration // the later of: lag began, the newest ack that moved it
}

// raise notes that the device should ack seq.
func (h *Hub) raise(c *conn, conv string, seq int64) {
	e, ok := c.lag[conv]
	if !ok {
		if c.lag == nil {
			c.lag = map[string]lagging{}
		}
		h.n.lagging++
		e.since = h.now
	}
	if seq > e.head {
		e.head = seq
		c.lag[conv] = e
		c.peak = max(c.peak, len(c.lag))
	}
}

// Heard notes an ack as it is received. If it moves the device, the entry's age begins anew: the flush that takes the
// entry out may be a while away. Acks that move nothing do not hold back the sweep.
func (h *Hub) Heard(s posthorn.Socket, conv string, seq int64) {
	h.lock()
	defer h.unlock()
	c := h.conn(s)
	if c == nil {
		return
	}
	if e, ok := c.lag[conv]; ok && seq > e.acked {
		e.acked, e.since = seq, h.now
		c.lag[conv] = e
	}
}

// Delivered takes out what a committed ack has caught up with, and puts in what the first ack has not: from there on the
// device has a cursor, and lags by all that it was told (before, lag began with what was told, see resetLag).
func (h *Hub) Delivered(deviceID int64, conv string, delivered int64) {
	h.lock()
	defer h.unlock()
	c := h.devices[deviceID]
	if c == nil || c.user == nil {
		return
	}
	if e, ok := c.lag[conv]; ok && delivered >= e.head {
		h.n.lagging--
		delete(c.lag, conv)
		if len(c.lag) == 0 && c.peak > 64 {
			c.lag, c.peak = nil, 0 // a map keeps the room that it once needed
		}
	}
	// The device may have synced, and acked, what has not been fanned out here. When it is, it is no lag; and what subbed
	// told it is, once it has a cursor.
	if mk := c.marks[conv]; c.phase == loads || mk.from > 0 || h.behind(c, conv, delivered) {
		mk.delivered = max(mk.delivered, delivered)
		c.mark(conv, mk)
	}
	if c.phase != loads { // whose lag is reckoned when its views have come
		h.raiseRest(c, conv, delivered)
	}
}

// raiseRest sees that a cursor below what its user was given stands in the lag set.
func (h *Hub) raiseRest(c *conn, conv string, delivered int64) {
	m := c.user.members[h.convs[conv]]
	if m == nil || m.load != nil || m.vague || m.visible <= max(delivered, c.marks[conv].delivered) {
		return
	}
	h.raise(c, conv, m.visible)
	if e := c.lag[conv]; e.acked < delivered { // new, or about an ack that was not heard
		e.acked = delivered
		c.lag[conv] = e
	}
}

// behind tells whether an event up to seq may still be raised for the connection.
func (h *Hub) behind(c *conn, conv string, seq int64) bool {
	cv := h.convs[conv]
	if cv == nil || seq > cv.head {
		return true
	}
	m := c.user.members[cv]
	return m == nil || m.load != nil
}
