package hub

// loading is a member whose view is being read. Events wait until it has come.
type loading struct {
	enters bool  // the member has come in: their connections get a conv frame first. Else only the periods are in doubt
	first  int64 // the event by which they came in
	newest int64 // and by which they came in again: the conv frame must be of a later date
	need   int64 // a view that does not reach this seq is of no use
	low    int64 // the lowest
	passed int64 // and the newest event that was not put by: told otherwise or lost; 0: none
	lost   bool  // there was one for which there was no room, or that was fanned out before they were known
	full   bool  // there was no room
	buf    []item
	bytes  int
}

// pass notes events that are not put by. A view must cover them: there may have been a leave among them.
func (ld *loading) pass(low, high int64) {
	if ld.low == 0 || low < ld.low {
		ld.low = low
	}
	ld.passed, ld.need = max(ld.passed, high), max(ld.need, high)
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
		m := u.members[cv]
		// One who had left may be followed still, see prune: with their old periods, although their views are newer.
		again := m != nil && (m.load != nil || (!m.periods.Present() && it.ev.Seq > m.head))
		if again || u.unaware(cv.id, it.ev.Seq) {
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
		ld.pass(seq+1, cv.head)
		ld.lost = true
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
		ld.pass(it.ev.Seq, it.ev.Seq)
		ld.lost, ld.full = true, true
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
