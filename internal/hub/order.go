package hub

import (
	"slices"
	"sort"
)

// order fans out the events of a conversation by seq, each once. One that comes before its turn is held, and the tail is
// woken, since what is missing has committed already: seqs have no holes (P1), and the conversation's lock is held through
// the commit.
func (h *Hub) order(cv *conv, it *item) {
	switch seq := it.ev.Seq; {
	case seq == cv.head+1:
		h.fanout(cv, it)
		h.drain(cv)
	case seq > cv.head:
		h.hold(cv, it)
	case cv.fill(seq):
		it.late = true
		h.fanout(cv, it)
	default:
		h.repeat(cv, it)
	}
}

// repeat handles an event that is past: it was fanned out, or told by the views of those who are followed, or given up.
// Only its op, if it has one, is waiting; and those whom it brings in, if it was lost to them.
func (h *Hub) repeat(cv *conv, it *item) {
	if it.ev.Seq <= cv.base && h.brings(it.ev) || bringsIn(it.ev) && h.strangers(cv, cv.id, it.ev.Users, it.ev.Seq) {
		h.overlooked(cv, it)
	}
	h.reply(cv, it)
	if it.ev.Seq <= cv.base || it.op != nil {
		h.note(cv, it)
	}
}

// hold keeps an event until those before it have come.
func (h *Hub) hold(cv *conv, it *item) {
	at := sort.Search(len(cv.held), func(i int) bool { return cv.held[i].ev.Seq >= it.ev.Seq })
	if at < len(cv.held) && cv.held[at].ev.Seq == it.ev.Seq {
		if twin := &cv.held[at]; twin.op == nil {
			twin.op, twin.origin, twin.prev = it.op, it.origin, it.prev
			it.op = nil
		} else {
			h.answer(h.origin(it), it)
		}
		return
	}
	cv.held = slices.Insert(cv.held, at, it.move())
	cv.bytes += it.size()
	h.n.held++
	if cv.due == 0 {
		h.await(cv)
	}
	for len(cv.held) > h.cfg.Limits.HubBuffer || cv.bytes > h.cfg.BufferBytes {
		h.expire(cv)
	}
}

func (h *Hub) unhold(cv *conv) item {
	it := cv.held[0]
	cv.held[0] = item{}
	cv.held = cv.held[1:]
	cv.bytes -= it.size()
	h.n.held--
	return it
}

// drain fans out what was held and is next now.
func (h *Hub) drain(cv *conv) {
	if cv.due == 0 {
		return
	}
	for len(cv.held) > 0 && cv.held[0].ev.Seq <= cv.head+1 {
		it := h.unhold(cv)
		h.fanout(cv, &it)
	}
	h.await(cv)
}
