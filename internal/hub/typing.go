package hub

import (
	"time"

	"github.com/posthorn/posthorn"
)

const (
	typingEach = time.Second            // one conversation of a connection
	typingAny  = 100 * time.Millisecond // any of them
)

// typed is when a connection was let through with its typing, by conversation: what is younger than typingEach, which
// typingAny keeps to a handful.
type typed map[string]time.Duration

// again tells whether enough time has passed, and notes it.
func (t *typed) again(conv string, now time.Duration) bool {
	for c, at := range *t {
		switch since := now - at; {
		case since >= typingEach:
			delete(*t, c)
		case since < typingAny || c == conv:
			return false
		}
	}
	if *t == nil {
		*t = typed{}
	}
	(*t)[conv] = now
	return true
}

// MayType tells whether a connection's user may show now that they are writing: a present member of a conversation whose
// members know each other, not more often than people read.
func (h *Hub) MayType(s posthorn.Socket, conv string) bool {
	h.lock()
	defer h.unlock()
	c := h.conn(s)
	if c == nil || c.user == nil {
		return false
	}
	cv := h.convs[conv]
	if m := c.user.members[cv]; m == nil || m.load != nil || !m.periods.Present() || cv.kind == posthorn.Channel || cv.leaving()[c.viewer.User] {
		return false
	}
	return c.typed.again(conv, h.now)
}

// Typing shows it to the other members here, by their periods as of now. Nobody is owed it.
func (h *Hub) Typing(conv, user string) {
	h.lock()
	defer h.unlock()
	cv := h.convs[conv]
	if cv == nil || cv.kind == posthorn.Channel {
		return
	}
	gone := cv.leaving()
	if gone[user] {
		return
	}
	for _, m := range cv.members {
		if m.user.name == user || gone[m.user.name] || m.load != nil || !m.periods.Present() {
			continue
		}
		for _, c := range m.user.conns {
			if c.phase == active {
				c.sock.PushTyping(conv, user)
			}
		}
	}
}
