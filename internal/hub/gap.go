package hub

import (
	"math"
	"slices"
	"time"

	"github.com/posthorn/posthorn"
)

// expect notes that a view has told of events that have not been fanned out. They are on their way; if they do not come,
// they were lost here (the store asked Wants before it was known that somebody would care, or the tail dropped a row), and
// the wait for them ends like that for any missing event. So a loss is noticed without further traffic (D5).
func (h *Hub) expect(cv *conv, head int64) {
	switch {
	case head <= max(cv.head, cv.known):
	case cv.known > cv.head:
		cv.next = max(cv.next, head) // its turn comes once known is there: a busy conversation is always a bit ahead
	default:
		cv.known, cv.knownAt = head, h.now
		h.await(cv)
	}
}

// skipTold goes on to the seq up to which every connection here was told by its views: nobody waits for what lies before,
// and some of it may have passed before anybody was here.
func (h *Hub) skipTold(cv *conv, v *posthorn.View) {
	if len(h.recent.windows) > 0 {
		return // somebody's views may be older
	}
	low := int64(math.MaxInt64)
	for _, m := range cv.members {
		if m.load == nil {
			low = min(low, m.head)
		}
		for _, c := range m.user.conns {
			low = min(low, c.marks[cv.id].from)
		}
		if low <= cv.head {
			return
		}
	}
	for _, m := range cv.members {
		switch {
		case m.load != nil:
			m.load.pass(cv.head+1, low)
		case m.user.name == v.User && v.Visible <= low:
			m.reach(v.Visible)
		default:
			m.suppose(m.periods.Prev(low + 1))
		}
	}
	cv.base, cv.head = low, low
	for len(cv.held) > 0 && cv.held[0].ev.Seq <= low {
		it := h.unhold(cv)
		h.repeat(cv, &it)
	}
	h.prune(cv)
	h.drain(cv)
}

// await has the clock end the wait for what is missing now, HoldGap after it became known that it is missing.
func (h *Hub) await(cv *conv) {
	if cv.known <= cv.head && cv.next > cv.head {
		cv.known, cv.knownAt = cv.next, h.now
	}
	since := time.Duration(math.MaxInt64)
	if cv.known > cv.head {
		since = cv.knownAt
	}
	for i := range cv.held {
		since = min(since, cv.held[i].at)
	}
	if since == math.MaxInt64 || h.convs[cv.id] != cv {
		cv.held, cv.due = nil, 0
		delete(h.gaps, cv)
		return
	}
	cv.due = since + h.cfg.Limits.HoldGap
	h.gaps[cv] = struct{}{}
	h.alarm(cv.due)
	h.wake = true
}

// expire ends the wait: what is missing becomes a hole, and what was held behind it goes out, up to the next gap. Its prev
// tells the clients of the hole. An event that comes later after all is still pushed.
//
// The hole may hold the leave of a member, so nobody is pushed anything before their periods have been read anew (V1).
func (h *Hub) expire(cv *conv) {
	hole := span{cv.head + 1, cv.known}
	if len(cv.held) > 0 {
		hole.to = cv.held[0].ev.Seq - 1
	}
	cv.holes = append(cv.holes, hole)
	if more := len(cv.holes) - h.cfg.Limits.HubBuffer; more > 0 {
		for _, s := range cv.holes[:more] {
			cv.giveUp(s)
		}
		cv.holes = slices.Delete(cv.holes, 0, more)
	}
	cv.head = hole.to
	h.n.expired++
	h.doubt(cv, cv.members, hole.to)
	h.drain(cv)
}

// giveUp is for a hole that is not remembered any longer: what would fill it is not pushed, but some event's prev has to
// tell the clients of it.
func (cv *conv) giveUp(s span) {
	for _, m := range cv.members {
		if m.load != nil {
			m.load.pass(s.from, s.to)
			m.load.lost = true
		} else if seq := m.periods.Prev(s.to + 1); seq >= s.from {
			m.suppose(seq)
		}
	}
}

// fill takes a seq out of the holes; false: it is in none.
func (cv *conv) fill(seq int64) bool {
	for i, s := range cv.holes {
		if seq < s.from || seq > s.to {
			continue
		}
		var rest []span
		if s.from < seq {
			rest = append(rest, span{s.from, seq - 1})
		}
		if seq < s.to {
			rest = append(rest, span{seq + 1, s.to})
		}
		cv.holes = slices.Replace(cv.holes, i, i+1, rest...)
		return true
	}
	return false
}

func (cv *conv) inHole(seq int64) bool {
	for _, s := range cv.holes {
		if seq >= s.from && seq <= s.to {
			return true
		}
	}
	return false
}
