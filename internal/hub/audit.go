package hub

import (
	"slices"

	"github.com/posthorn/posthorn"
)

// The store audits what the hub believes against the database: heads that the tail should have brought, and cursors that
// should have caught up. Nothing is trusted to have worked, not even the tail.

// perConn is how many claims one connection gives, so that a sample reaches many of them.
const perConn = 4

// Behind tells from which seq on a conversation that is known to reach head has not been fanned out here; 0: nobody here
// follows it, or nothing is missing.
func (h *Hub) Behind(conv string, head int64) (from int64) {
	h.lock()
	defer h.unlock()
	cv := h.convs[conv]
	switch {
	case cv == nil:
		return 0
	case len(cv.holes) > 0 && cv.holes[0].from <= head:
		return cv.holes[0].from
	case cv.head < head:
		return cv.head + 1
	}
	return 0
}

// Unaware tells whether one of the users is connected here and was not told that they came into the conversation at seq
// or later.
func (h *Hub) Unaware(conv string, users []string, seq int64) bool {
	h.lock()
	defer h.unlock()
	return h.strangers(h.convs[conv], conv, users, seq)
}

// strangers tells whether one of the users is connected here, is not followed in the conversation, and was not told of a
// stay that begins at seq.
func (h *Hub) strangers(cv *conv, id string, users []string, seq int64) bool {
	return slices.ContainsFunc(users, func(name string) bool {
		u := h.users[name]
		return u != nil && u.members[cv] == nil && u.unaware(id, seq)
	})
}

// Caught gives up to n cursors of which the lag set says that they have caught up. A device that has no cursor yet is not
// asked to catch up with what it was told; a claim for which nothing is stored is to be left out.
func (h *Hub) Caught(n int) (claims []posthorn.Claim) {
	h.lock()
	defer h.unlock()
	for _, c := range h.devices { // in random order
		if len(claims) >= n {
			return claims
		}
		if c.phase != active {
			continue
		}
		left := perConn
		for cv, m := range c.user.members {
			if left == 0 || len(claims) >= n {
				break
			}
			_, lags := c.lag[cv.id]
			_, special := c.marks[cv.id]
			if lags || special || m.load != nil || m.vague || m.visible == 0 {
				continue
			}
			left--
			claims = append(claims, posthorn.Claim{DeviceID: c.viewer.DeviceID, Install: c.viewer.Install, Conv: cv.id, Head: m.visible})
		}
	}
	return claims
}

// Correct puts into the lag set what is missing there: the sweep will hint it. A claim is older than what is stored, so an
// entry that was taken out rightly is never put back.
func (h *Hub) Correct(stored []posthorn.Claim) (wrong int) {
	h.lock()
	defer h.unlock()
	for _, x := range stored {
		c := h.devices[x.DeviceID]
		if c == nil || c.phase != active || c.viewer.Install != x.Install || x.Delivered >= x.Head {
			continue
		}
		if _, lags := c.lag[x.Conv]; !lags {
			h.raise(c, x.Conv, x.Head)
			wrong++
		}
	}
	return wrong
}
