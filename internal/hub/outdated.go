package hub

import (
	"slices"

	"github.com/posthorn/posthorn"
)

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

// begins tells whether a conversation begins to be followed with this view.
func (h *Hub) begins(c *conn, v *posthorn.View) bool {
	return h.convs[v.Conv] == nil && v.Periods.Present() && !othersLack(c, v)
}

// awaits tells whether the user is not followed in the conversation and should not be yet.
func (h *Hub) awaits(c *conn, v *posthorn.View) bool {
	return v.Periods.Present() && c.user.members[h.convs[v.Conv]] == nil && othersLack(c, v)
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

// othersLack tells whether the user has another connection that was told of its conversations, but not of this stay.
func othersLack(c *conn, v *posthorn.View) bool {
	for _, x := range c.user.conns {
		if x != c && x.knows() && x.marks[v.Conv].from < begun(v) {
			return true
		}
	}
	return false
}
