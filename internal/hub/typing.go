package hub

import (
	"time"

	"github.com/posthorn/posthorn"
)

const (
	typingEach = time.Second            // one conversation of a connection
	typingAny  = 100 * time.Millisecond // any of them
)

// typed is the newest typing that a connection was let through with.
type typed struct {
	conv string
	at   time.Duration
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
	since := h.now - c.typed.at
	if c.typed.at > 0 && (since < typingAny || (since < typingEach && c.typed.conv == conv)) {
		return false
	}
	c.typed = typed{conv, h.now}
	return true
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
