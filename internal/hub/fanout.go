package hub

import "github.com/posthorn/posthorn"

// fanout gives one event to every local member who may see it, and its op the answer, in this order of seq (B08).
func (h *Hub) fanout(cv *conv, it *item) {
	ev := it.ev
	if !it.late {
		cv.head = ev.Seq
	}
	if bringsIn(ev) {
		h.admit(cv, it)
	}
	origin := h.origin(it)
	h.frames = h.frames[:0]
	for _, m := range cv.members {
		h.step(m, it, origin)
	}
	clear(h.frames) // so that no frame is kept alive
	h.reply(cv, it)
	h.note(cv, it)
	if ev.Kind == posthorn.KindLeave || it.late {
		h.prune(cv)
	}
}

// step takes an event to one member: their periods move along the log, and what they may see is offered to each of their
// connections.
func (h *Hub) step(m *member, it *item, origin *conn) {
	seq := it.ev.Seq
	if m.load != nil {
		h.putBy(m, it, origin)
		return
	}
	if seq > m.head {
		m.head = seq
		if it.ev.Kind == posthorn.KindLeave {
			m.leave(it.ev)
		}
	}
	prev := m.prev(seq)
	if !m.sees(it.ev) {
		return
	}
	raise := !it.late || seq > m.visible // else the device may have synced and acked it already
	m.reach(seq)
	for _, c := range m.user.conns {
		h.offer(c, m, it, prev, raise, c == origin)
	}
}

// offer gives an event to one connection, the sender's own excepted: it gets the answer instead.
func (h *Hub) offer(c *conn, m *member, it *item, prev int64, raise, own bool) {
	cv, seq := m.conv, it.ev.Seq
	var acked int64
	if c.marks != nil {
		mk := c.marks[cv.id]
		if seq <= mk.from {
			if raise && mk.delivered > 0 && seq > mk.delivered {
				h.raise(c, cv.id, seq) // told by its views, when it had no cursor yet
			}
			return
		}
		acked = mk.delivered
		if !it.late && seq > acked && len(cv.holes) == 0 && c.phase != loads {
			c.mark(cv.id, mark{owed: mk.owed}) // the exception has passed
		}
	}
	if raise && seq > acked {
		h.raise(c, cv.id, seq)
	}
	switch {
	case own:
	case c.phase == active:
		h.push(c, cv.id, seq, h.encode(it.ev, prev), m.visible)
	default:
		c.pend.event(h, cv.id, seq, h.encode(it.ev, prev))
	}
}

// encoded is a frame of the event that is being fanned out.
type encoded struct {
	prev  int64
	frame []byte
}

// encode makes the frame, once for each prev: most members share it.
func (h *Hub) encode(ev *posthorn.Event, prev int64) []byte {
	for i := range h.frames {
		if h.frames[i].prev == prev {
			return h.frames[i].frame
		}
	}
	h.frames = append(h.frames, encoded{prev, h.cfg.Encode(ev, prev)})
	return h.frames[len(h.frames)-1].frame
}

// sees judges by the log's own order: the event's seq against the periods that were complete up to it (V1). So what waits in
// a socket's queue needs no second look when it is written: a leave at seq n stands in the periods of its member before
// anything above n is judged, whatever is late, lost or loaded meanwhile, and what lies below stays theirs to see (B17).
// TestV1_B17_NothingIsQueuedBehindALeave looks for a way round it.
func (m *member) sees(ev *posthorn.Event) bool {
	if !m.periods.Sees(ev.Seq) {
		return false
	}
	return m.conv.kind != posthorn.Channel || ev.VisibleIn(m.conv.kind, m.user.name, m.periods.Role())
}

// leave closes the newest period if the event names the member. The periods may be shared with the loader, so they are
// copied.
func (m *member) leave(ev *posthorn.Event) {
	if !m.periods.Present() {
		return
	}
	for _, u := range ev.Users {
		if u == m.user.name {
			m.periods = append(posthorn.Periods(nil), m.periods...)
			m.periods[len(m.periods)-1].To = ev.Seq
			return
		}
	}
}

// prev is the previous seq that the member may see: what lies in a hole counts, unseen as it is, so that the client
// notices the gap. In a channel, where single events are hidden, it is the newest visible one that is known; if that is
// not known either, it may name a hidden one, which costs the client a sync and loses nothing.
func (m *member) prev(seq int64) int64 {
	top := m.periods.Prev(seq)
	if m.conv.kind != posthorn.Channel || m.visible >= seq {
		return top
	}
	known := m.visible
	for _, s := range m.conv.holes {
		if s.from < seq {
			if in := m.periods.Prev(min(s.to+1, seq)); in >= s.from {
				known = max(known, in)
			}
		}
	}
	return min(known, top)
}
