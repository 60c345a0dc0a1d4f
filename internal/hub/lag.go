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

// Delivered takes out what a committed ack has caught up with.
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
	if _, lags := c.lag[conv]; !lags {
		h.fallenBehind(c, conv, delivered)
	}
	// The device may have synced, and acked, what has not been fanned out here. When it is, it is no lag.
	if c.phase == loads || h.behind(c, conv, delivered) {
		mk := c.marks[conv]
		mk.delivered = max(mk.delivered, delivered)
		c.mark(conv, mk)
	}
}

// fallenBehind begins the lag of a device that had no cursor when it was told a head: from its first ack on it is held to
// what it was told.
func (h *Hub) fallenBehind(c *conn, conv string, delivered int64) {
	cv := h.convs[conv]
	if m := c.user.members[cv]; m != nil && m.load == nil && c.phase == active && delivered < m.visible && max(delivered, c.marks[conv].delivered) < m.visible {
		h.raise(c, conv, m.visible)
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
