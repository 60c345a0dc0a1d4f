package hub

import "github.com/posthorn/posthorn"

// member is a local user in a conversation.
type member struct {
	user    *user
	conv    *conv
	at      int32    // place in conv.members
	load    *loading // nil: the periods are known
	periods posthorn.Periods
	base    int64 // up to here nothing was offered to them: they are followed from a view on that held it
	head    int64 // the seq up to which the periods are complete
	visible int64 // newest event that the user may see, of those loaded or fanned out
	vague   bool  // visible may name an event that a channel hides
}

// reach moves visible to an event that the user may see indeed.
func (m *member) reach(seq int64) {
	if seq >= m.visible {
		m.visible, m.vague = seq, false
	}
}

// suppose moves it where only the periods are known.
func (m *member) suppose(seq int64) {
	if seq > m.visible {
		m.visible, m.vague = seq, m.conv.kind == posthorn.Channel
	}
}

// enter makes a member.
func (h *Hub) enter(u *user, cv *conv) *member {
	m := &member{user: u, conv: cv, at: int32(len(cv.members))}
	cv.members = append(cv.members, m)
	if u.members == nil {
		u.members = map[*conv]*member{}
	}
	u.members[cv] = m
	return m
}

// drop forgets a member, and the conversation with its last one.
func (h *Hub) drop(m *member) {
	cv, last := m.conv, len(m.conv.members)-1
	cv.members[m.at] = cv.members[last]
	cv.members[m.at].at = m.at
	cv.members[last] = nil
	cv.members = cv.members[:last]
	delete(m.user.members, cv)
	if ld := m.load; ld != nil {
		m.load = nil
		h.answerAll(ld.buf)
	}
	if last == 0 {
		delete(h.convs, cv.id)
		delete(h.gaps, cv)
		h.n.held -= len(cv.held)
		held := cv.held
		cv.held, cv.bytes, cv.due = nil, 0, 0
		for i := range held {
			h.deliver(&held[i]) // it may bring somebody back in
		}
	}
}

// prune drops those who have left and have had their leave event. While there are holes they stay: an event that fills
// one may still be for them.
func (h *Hub) prune(cv *conv) {
	if len(cv.holes) > 0 {
		return
	}
	for i := len(cv.members) - 1; i >= 0; i-- {
		m := cv.members[i]
		if m.load != nil || m.periods.Present() || m.periods.Bound(cv.head+1) > cv.head {
			continue
		}
		// A join that is told twice must not bring it all back; but one that the connection's view knows already must.
		left := m.periods.Bound(cv.head)
		for _, c := range m.user.conns {
			mk := c.marks[cv.id]
			mk.awaits = 0
			if mk.from > left {
				mk.awaits = left + 1
			}
			mk.from = max(mk.from, left)
			if c.phase == loads {
				mk.base = m.base
			}
			c.mark(cv.id, mk)
		}
		h.drop(m)
	}
}
