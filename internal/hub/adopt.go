package hub

import (
	"time"

	"github.com/posthorn/posthorn"
)

// adopt takes the views that a sub has read. What was fanned out above their heads since the sub began is applied to
// them, so that the connection gets exactly what comes after its views; the rest the client learns by subbed.
//
// again: they are of no use, since too much has happened meanwhile; after the last attempt that is an error.
func (h *Hub) adopt(c *conn, w *window, views []posthorn.View, last bool) (again bool, err error) {
	h.lock()
	defer h.unlock()
	if c.turn != w.turn {
		h.recent.close(h, w)
		return false, posthorn.Errorf(posthorn.CodeReplaced, "the connection has ended, was replaced, or began a newer sub")
	}
	byConv := make(map[string]*posthorn.View, len(views))
	for i := range views {
		byConv[views[i].Conv] = &views[i]
	}
	lost := absent(c, byConv)
	switch useless := h.recent.overrun(w) || h.outdated(c, w, byConv); {
	case !useless && (last || len(lost) == 0):
	case useless && last:
		h.recent.close(h, w)
		h.fallBack(c, w.turn)
		return false, &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: "too much happened while the conversations were read", Retry: time.Second}
	default:
		h.recent.reopen(h, w)
		return true, nil
	}
	for _, m := range lost {
		h.doubt(m.conv, []*member{m}, 0) // nor do they come with newer views: it must be their leave that is missing here
	}
	before := h.recent.take(func(it *item) (yes, withOp bool) {
		v := byConv[it.ev.Conv]
		return v != nil, v != nil && h.settles(c, v, it)
	})
	h.recent.close(h, w)
	c.phase = waits
	c.pend.above(byConv)
	old := c.lag
	c.lag, c.peak = make(map[string]lagging), 0
	for _, m := range lost {
		if e, ok := old[m.conv.id]; ok {
			c.lag[m.conv.id] = e
		}
	}
	for conv, v := range byConv {
		h.resetLag(c, v, old[conv])
	}
	h.n.lagging += len(c.lag) - len(old)
	for conv, v := range byConv {
		h.adoptView(c, v, before[conv])
	}
	return false, nil
}

// resetLag: a device lags by what lies between its cursor and what it is told. Without a cursor, lag starts with what it
// is told: else a new browser would be hinted for ever.
func (h *Hub) resetLag(c *conn, v *posthorn.View, old lagging) {
	mk := c.marks[v.Conv]
	acked := max(v.Delivered, v.Start, mk.delivered)
	told := int64(0)
	if v.HasCursor || mk.delivered > 0 {
		told = v.Visible
	}
	if old.head > v.Head {
		told = old.head // pushed since
	}
	if told > acked {
		c.lag[v.Conv] = lagging{head: told, acked: acked, since: h.now}
		c.peak = max(c.peak, len(c.lag))
	}
	mk.awaits, mk.base, mk.owed = 0, 0, nil
	mk.from = max(mk.from, v.Head) // from may be higher: what was buffered since ended with their leave
	c.mark(v.Conv, mk)
}

// adoptView makes the user a member by the view, unless they are one already, and applies the events that were remembered.
func (h *Hub) adoptView(c *conn, v *posthorn.View, before []item) {
	u, cv := c.user, h.convs[v.Conv]
	var m *member
	if cv != nil {
		m = u.members[cv]
	}
	for i := range before {
		if it := &before[i]; it.ev.Seq <= v.Head && h.origin(it) == c {
			h.answer(c, it)
		}
	}
	switch {
	case h.begins(c, v):
		cv = h.track(v.Conv, v.Head)
		h.enterBy(u, cv, v)
		h.unmark(c, cv)
		h.feed(cv, before)
	case !v.Periods.Present(): // told by subbed, lags until its leave event is acked
	case m != nil && m.load != nil: // will be finished; the mark keeps from this connection what its view holds
	case m != nil: // another connection of the user follows it
		h.unmark(c, cv)
	case h.awaits(c, v):
		// Another connection has not been told of this conversation: the join event is still on its way, and brings
		// them the conv frame. Should it have been given up already, the views are read for them now.
		if from := begun(v); cv != nil && cv.head >= from {
			j := &job{cv: cv}
			ld := &loading{enters: true, first: from, newest: from, lost: true}
			ld.pass(from, cv.head)
			j.add(h.enter(u, cv), ld)
			h.enqueue(j)
		} else {
			mk := c.marks[v.Conv]
			mk.awaits = from
			c.mark(v.Conv, mk)
		}
	default:
		m = h.enterBy(u, cv, v)
		if n := len(cv.holes); n > 0 && v.Head < cv.holes[n-1].to {
			h.doubt(cv, []*member{m}, cv.holes[n-1].to) // their leave may lie in the hole, see expire
		}
		if h.replay(m, before); u.members[cv] == m {
			h.unmark(c, cv)
		}
	}
	for i := range before {
		h.answerStray(&before[i]) // whatever is still unanswered
	}
	if cv != nil && h.convs[v.Conv] == cv && v.Head > cv.head {
		h.skipTold(cv, v)
	}
	if cv != nil && h.convs[v.Conv] == cv {
		h.expect(cv, v.Head)
	}
}

func (h *Hub) enterBy(u *user, cv *conv, v *posthorn.View) *member {
	m := h.enter(u, cv)
	cv.kind = v.Kind
	m.periods, m.base, m.head, m.visible = v.Periods, v.Head, v.Head, v.Visible
	h.missed(m, min(v.Visible, cv.head), false) // by a connection whose own, older view awaits the join event
	return m
}

// replay applies to a new member what was fanned out above their view.
func (h *Hub) replay(m *member, items []item) {
	head := m.head // which steps
	for i := range items {
		it := &items[i]
		if seq := it.ev.Seq; seq > head && seq <= m.conv.head && !m.conv.inHole(seq) {
			h.stepAll(m, items[i:i+1])
		}
	}
	h.prune(m.conv)
}

// unmark takes back the exceptions for a conversation if none of the events that they speak of will be fanned out again.
func (h *Hub) unmark(c *conn, cv *conv) {
	if mk := c.marks[cv.id]; len(cv.holes) == 0 && max(mk.from, mk.delivered) <= cv.head {
		c.mark(cv.id, mark{owed: mk.owed})
	}
}
