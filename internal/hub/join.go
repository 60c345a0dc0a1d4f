package hub

import (
	"slices"

	"github.com/posthorn/posthorn"
)

// loading is a member whose view is being read. Events wait until it has come.
type loading struct {
	enters bool  // the member has come in: their connections get a conv frame first. Else only the periods are in doubt
	first  int64 // the event by which they came in
	newest int64 // and by which they came in again: the conv frame must be of a later date
	need   int64 // a view that does not reach this seq is of no use
	passed int64 // newest event that was not put by: told otherwise or lost
	lost   bool  // there was one for which there was no room, or that was fanned out before they were known
	full   bool  // there was no room
	low    int64 // the lowest of those that fill a hole and found no room; 0: none
	buf    []item
	bytes  int
}

// admit makes members of those whom an open or join event names and who are connected here. What they may see of this and
// later events waits for their view, since roles and history stand there; the conv frame precedes it all.
func (h *Hub) admit(cv *conv, it *item) {
	j := &job{cv: cv}
	for _, name := range it.ev.Users {
		u := h.users[name]
		if u == nil {
			continue
		}
		if m := u.members[cv]; (m != nil && m.load != nil) || u.unaware(cv.id, it.ev.Seq) {
			h.bring(j, u, it)
		}
	}
	h.enqueue(j)
}

// bring makes one user a member whose view is being read; nil: they are one already.
func (h *Hub) bring(j *job, u *user, it *item) *member {
	cv, seq := j.cv, it.ev.Seq
	m := u.members[cv]
	switch {
	case m == nil:
		m = h.enter(u, cv)
	case m.load != nil:
		m.load.need, m.load.newest = max(m.load.need, seq), max(m.load.newest, seq)
		if !m.load.enters && (seq > m.head || !m.periods.Present()) {
			m.load.enters, m.load.first = true, seq
		}
		return nil
	case m.periods.Present():
		return nil // the view has told it
	}
	for _, c := range u.conns {
		if mk := c.marks[cv.id]; mk.awaits > 0 {
			mk.awaits = 0
			c.mark(cv.id, mk)
		}
	}
	ld := &loading{enters: true, first: seq, newest: seq, need: seq}
	if it.late && cv.head > seq {
		ld.need, ld.passed, ld.lost = cv.head, cv.head, true
	}
	j.add(m, ld)
	return m
}

// overlooked brings in those whose join was past, here, before it came: the conversation is followed for somebody else,
// whose view was quicker than the tail. What has passed since is told by a hint.
func (h *Hub) overlooked(cv *conv, it *item) {
	it.late = true
	j := &job{cv: cv}
	for _, name := range it.ev.Users {
		if u := h.users[name]; u != nil && u.unaware(cv.id, it.ev.Seq) {
			if m := h.bring(j, u, it); m != nil {
				h.putBy(m, it, h.origin(it))
			}
		}
	}
	h.enqueue(j)
}

// doubt has the periods of members read anew, up to seq at least. Until then their events wait.
func (h *Hub) doubt(cv *conv, members []*member, seq int64) {
	j := &job{cv: cv}
	for _, m := range members {
		if m.load != nil {
			m.load.need = max(m.load.need, seq)
			continue
		}
		j.add(m, &loading{need: seq})
	}
	h.enqueue(j)
}

// putBy keeps an event for a member whose view is being read. The op of a sender who has just come in waits with it: so
// they get `sent` after the conv frame, and in its place among the events.
func (h *Hub) putBy(m *member, it *item, origin *conn) {
	ld := m.load
	size := it.size()
	if len(ld.buf) >= h.cfg.Limits.HubBuffer || ld.bytes+size > h.cfg.BufferBytes {
		h.n.overflows++
		ld.passed, ld.lost, ld.full = max(ld.passed, it.ev.Seq), true, true
		ld.need = max(ld.need, it.ev.Seq) // it may have been their leave
		if it.late && (ld.low == 0 || it.ev.Seq < ld.low) {
			ld.low = it.ev.Seq
		}
		return
	}
	ld.bytes += size
	if it.op != nil && ld.enters && origin != nil && origin.user == m.user {
		ld.buf = append(ld.buf, it.move())
		return
	}
	it.keep()
	x := *it
	x.op = nil
	ld.buf = append(ld.buf, x)
}

// finish takes the view that has come: the conv frame to every connection of the user, then the events that waited.
func (h *Hub) finish(m *member, v *posthorn.View, entries map[*conn]dated) {
	cv, ld := m.conv, m.load
	m.load, cv.kind = nil, v.Kind
	m.periods, m.head = v.Periods, max(m.head, v.Head)
	if ld.enters {
		m.visible = max(m.visible, v.Periods.Prev(ld.first))
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
		if seq := ld.buf[i].ev.Seq; ld.low > 0 && seq > ld.low {
			m.visible = max(m.visible, m.periods.Prev(seq))
		}
		h.stepAll(m, ld.buf[i:i+1])
	}
	passed := v.Visible // the newest visible one of those, so that prev tells it
	if passed > ld.passed {
		passed = v.Periods.Prev(ld.passed + 1)
	}
	m.visible = max(m.visible, passed)
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
	if e.Start > 0 || e.Delivered > 0 {
		// A cursor of an earlier stay: from its place on, what was told lags. Without one, lag starts with what is told.
		if e.Head > max(e.Start, e.Delivered, c.marks[e.Conv].delivered) {
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
