package hub

import (
	"slices"

	"github.com/posthorn/posthorn"
)

// Deliver takes committed events, late, twice or too early as they may be. It waits for nothing but the lock.
func (h *Hub) Deliver(events []posthorn.Committed) {
	h.lock()
	defer h.unlock()
	for i := range events {
		c := &events[i]
		it := item{ev: &c.Event, op: c.Op, prev: c.Prev, epoch: c.Epoch, at: h.now}
		if c.Op != nil {
			it.origin = c.Op.Origin
		}
		if h.foreign(c.Epoch) {
			h.disown(&it)
			continue
		}
		h.deliver(&it)
	}
}

// disown answers the op of an event that was committed in an epoch that has ended: it may be gone, the resend finds out.
func (h *Hub) disown(it *item) {
	if op := it.op; op != nil && op.Done != nil {
		op.Done(posthorn.Outcome{Err: posthorn.ErrUnknown})
	}
}

func (h *Hub) deliver(it *item) {
	if h.stopped {
		h.answer(nil, it)
		return
	}
	if cv := h.convs[it.ev.Conv]; cv != nil {
		h.order(cv, it)
		return
	}
	if !h.brings(it.ev) {
		h.stray(it)
		return
	}
	// The first local users of this conversation come in. What was sent there since may have overtaken this event.
	cv := h.track(it.ev.Conv, it.ev.Seq-1)
	h.order(cv, it)
	h.feed(cv, h.recent.take(func(x *item) (bool, bool) { return x.ev.Conv == cv.id, true })[cv.id])
}

// brings tells whether the event makes somebody a member who must be told of it.
func (h *Hub) brings(ev *posthorn.Event) bool {
	return bringsIn(ev) && slices.ContainsFunc(ev.Users, func(name string) bool {
		u := h.users[name]
		return u != nil && u.unaware(ev.Conv, ev.Seq)
	})
}

func bringsIn(ev *posthorn.Event) bool {
	return ev.Kind == posthorn.KindOpen || ev.Kind == posthorn.KindJoin
}

// stray handles an event of a conversation in which nobody here is known to be.
func (h *Hub) stray(it *item) {
	if len(h.users) == 0 {
		h.answer(nil, it)
		return
	}
	if !h.waitsForReader(it) {
		h.answer(nil, it)
	}
	h.recent.remember(h, it)
}

// feed puts in order what had come before the conversation was followed.
func (h *Hub) feed(cv *conv, items []item) {
	for i := range items {
		if it := &items[i]; h.convs[cv.id] == cv {
			h.order(cv, it)
		} else {
			h.deliver(it) // the last member has left meanwhile
		}
	}
}

// Wants tells whether anybody here may care for the conversation: the store need not read its events otherwise. While
// views are being read nobody knows, so everything is wanted.
func (h *Hub) Wants(conv string, users []string) bool {
	h.lock()
	defer h.unlock()
	if len(h.recent.windows) > 0 || h.convs[conv] != nil {
		return true
	}
	for _, u := range users {
		if h.users[u] != nil {
			return true
		}
	}
	return false
}

// Heads tells up to where each conversation with local listeners was fanned out without a hole.
func (h *Hub) Heads() map[string]int64 {
	h.lock()
	defer h.unlock()
	heads := make(map[string]int64, len(h.convs))
	for id, cv := range h.convs {
		heads[id] = cv.head
		if len(cv.holes) > 0 {
			heads[id] = cv.holes[0].from - 1
		}
	}
	return heads
}
