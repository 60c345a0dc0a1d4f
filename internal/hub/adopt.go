package hub

import (
	"slices"
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

// outdated tells whether the views were read too early to go on from: before something that passed here unseen.
func (h *Hub) outdated(c *conn, w *window, views map[string]*posthorn.View) bool {
	for conv, v := range views {
		if cv := h.convs[conv]; (cv != nil && v.Head < cv.base) || v.Head < c.marks[conv].base {
			return true // it is, or was, followed from a later view on
		}
	}
	for _, it := range h.recent.since(w) {
		if v := views[it.ev.Conv]; (v == nil || v.Head < it.ev.Seq) && bringsIn(it.ev) && slices.Contains(it.ev.Users, c.user.name) {
			return true // they have come in, perhaps again
		}
	}
	for cv, m := range c.user.members {
		if v := views[cv.id]; v != nil && v.Head < m.base {
			return true // likewise, for another connection of the user
		}
	}
	return false
}

// absent lists the memberships that are followed for another connection of the user, but are in none of the views.
func absent(c *conn, views map[string]*posthorn.View) (ms []*member) {
	for cv, m := range c.user.members {
		if m.load == nil && m.periods.Present() && views[cv.id] == nil {
			ms = append(ms, m)
		}
	}
	return ms
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
		if it := &before[i]; it.ev.Seq <= v.Head {
			h.answer(h.origin(it), it)
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
			j.add(h.enter(u, cv), &loading{enters: true, first: from, newest: from, need: cv.head, passed: cv.head, lost: true})
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

// begins tells whether a conversation begins to be followed with this view.
func (h *Hub) begins(c *conn, v *posthorn.View) bool {
	return h.convs[v.Conv] == nil && v.Periods.Present() && !othersLack(c, v)
}

// settles tells whether the op of an event need not wait for another event any more.
func (h *Hub) settles(c *conn, v *posthorn.View, it *item) bool {
	if h.begins(c, v) {
		return true
	}
	o := h.origin(it)
	if it.ev.Seq <= v.Head && o == c {
		return true
	}
	return o != nil && o.user == c.user && v.Periods.Present() && !h.awaits(c, v)
}

// awaits tells whether the user is not followed in the conversation and should not be yet.
func (h *Hub) awaits(c *conn, v *posthorn.View) bool {
	return v.Periods.Present() && c.user.members[h.convs[v.Conv]] == nil && othersLack(c, v)
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

// othersLack tells whether the user has another connection that was told of its conversations, but not of this stay.
func othersLack(c *conn, v *posthorn.View) bool {
	for _, x := range c.user.conns {
		if x != c && x.knows() && x.marks[v.Conv].from < begun(v) {
			return true
		}
	}
	return false
}
