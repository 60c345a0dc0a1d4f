package hub

import (
	"slices"

	"github.com/posthorn/posthorn"
)

// finish takes the view that has come: the conv frame to every connection of the user, then the events that waited.
func (h *Hub) finish(m *member, v *posthorn.View, entries map[*conn]dated) {
	cv, ld := m.conv, m.load
	m.load, cv.kind = nil, v.Kind
	m.periods, m.head = v.Periods, max(m.head, v.Head)
	if ld.enters {
		m.suppose(v.Periods.Prev(ld.first))
		for _, c := range m.user.conns {
			h.introduce(c, entries[c].entry)
		}
	}
	slices.SortStableFunc(ld.buf, bySeq) // a hole may have been filled meanwhile
	cut := slices.IndexFunc(ld.buf, func(it item) bool { return it.ev.Seq > ld.passed })
	if cut < 0 {
		cut = len(ld.buf)
	}
	for i := range ld.buf[:cut] {
		// Where something passed before it, prev names all that may have been visible.
		if seq := ld.buf[i].ev.Seq; ld.low > 0 && seq > ld.low {
			m.suppose(m.periods.Prev(seq))
		}
		h.stepAll(m, ld.buf[i:i+1])
	}
	passed := v.Visible // the newest visible one of those, so that prev tells it
	if passed > ld.passed {
		passed = v.Periods.Prev(ld.passed + 1)
		m.suppose(passed)
	} else {
		m.reach(passed)
	}
	if ld.lost {
		h.missed(m, passed, ld.full)
	}
	h.stepAll(m, ld.buf[cut:])
	// Where the newest that they may see lies in a hole, no prev will tell them.
	if gone := min(v.Visible, cv.head); !ld.enters && gone > m.visible {
		h.missed(m, gone, false)
	}
	h.expect(cv, v.Head)
	h.prune(cv)
}

// stepAll takes what waited to a member, and gives the answers in their place.
func (h *Hub) stepAll(m *member, items []item) {
	for i := range items {
		it := &items[i]
		origin := h.origin(it)
		h.frames = h.frames[:0]
		h.step(m, it, origin)
		h.answer(origin, it)
	}
	clear(h.frames)
}

// introduce tells a connection of a conversation before its first event. One whose own views are being read learns of it
// there.
func (h *Hub) introduce(c *conn, e *posthorn.Entry) {
	if e == nil || !c.knows() {
		return
	}
	if mk := c.marks[e.Conv]; max(e.Start, e.Delivered, mk.delivered) > 0 {
		// A cursor, of an earlier stay or quicker than the tail: from its place on, what was told lags. Without one, lag
		// starts with what is told.
		mk.delivered = max(e.Start, e.Delivered, mk.delivered)
		c.mark(e.Conv, mk)
		if e.Head > mk.delivered {
			h.raise(c, e.Conv, e.Head)
		}
	}
	switch {
	case c.phase == active:
		h.tell(c, e)
	case c.pend.room(h, 0):
		c.pend.parcels = append(c.pend.parcels, parcel{conv: e.Conv, entry: e})
	default:
		mk := c.marks[e.Conv]
		mk.owed = e
		c.mark(e.Conv, mk)
	}
}

// missed tells the connections of a member that they lag by an event that will not be pushed to them.
func (h *Hub) missed(m *member, seq int64, full bool) {
	conv, why := m.conv.id, "gap"
	if full {
		why = "overflow"
	}
	for _, c := range m.user.conns {
		if mk := c.marks[conv]; !c.knows() || seq <= max(mk.from, mk.delivered) {
			continue
		}
		h.raise(c, conv, seq)
		if c.phase == active {
			h.hint(c, conv, seq, why)
		} else {
			c.pend.lose(conv, seq, why)
		}
	}
}
