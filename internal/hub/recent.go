package hub

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// recent remembers, for a moment, the events whose readers may not be known yet:
//
//   - while views are being read, all events: which of them are for the device is known afterwards;
//   - for HoldGap, those of conversations that are not followed, or have not been for long: a message may overtake, by
//     memory, the event by which a local user came into the conversation, if that one comes by the tail.
//
// Where the sender's connection is subscribed here, the op waits with the event, to be answered in its place.
type recent struct {
	items   []item
	base    int64 // number of events before items[0]
	bytes   int
	windows []*window
}

func (r *recent) end() int64 { return r.base + int64(len(r.items)) }

func (r *recent) open(turn uint64) *window {
	w := &window{turn: turn, start: r.end()}
	r.windows = append(r.windows, w)
	return w
}

// reopen begins anew after views that were useless.
func (r *recent) reopen(h *Hub, w *window) {
	w.start = r.end()
	r.trim(h)
}

func (r *recent) close(h *Hub, w *window) {
	r.windows = slices.DeleteFunc(r.windows, func(x *window) bool { return x == w })
	r.trim(h)
}

// since lists what came after a window was opened.
func (r *recent) since(w *window) []item { return r.items[max(0, w.start-r.base):] }

// overrun tells whether events have been dropped that the window needed.
func (r *recent) overrun(w *window) bool { return w.start < r.base }

// remember adds an event, with its op unless that is answered.
func (r *recent) remember(h *Hub, it *item) {
	x := it.move()
	x.at, x.late = h.now, false // whether it is late is judged again
	r.items = append(r.items, x)
	r.bytes += x.size()
	for len(r.items) > h.cfg.Limits.HubBuffer || r.bytes > h.cfg.BufferBytes {
		r.shift(h)
	}
	h.alarm(h.now + h.cfg.Limits.HoldGap)
}

// note remembers an event of a conversation that is followed, if it may be of use.
func (h *Hub) note(cv *conv, it *item) {
	if len(h.recent.windows) > 0 || h.now-cv.since < h.cfg.Limits.HoldGap {
		h.recent.remember(h, it)
	}
}

// trim drops what is old and in no window. It returns when to look again; 0: no need.
func (r *recent) trim(h *Hub) (next time.Duration) {
	from := int64(math.MaxInt64)
	for _, w := range r.windows {
		from = min(from, w.start)
	}
	for len(r.items) > 0 {
		due := r.items[0].at + h.cfg.Limits.HoldGap
		if due > h.now {
			return due
		}
		if r.base >= from {
			// Kept for a sub, but nobody waits longer for an answer than HoldGap.
			for i := range r.items {
				if due := r.items[i].at + h.cfg.Limits.HoldGap; due > h.now {
					return due
				}
				h.answerStray(&r.items[i])
			}
			return 0
		}
		r.shift(h)
	}
	return 0
}

// shift drops the oldest.
func (r *recent) shift(h *Hub) {
	x := r.items[0]
	r.items[0] = item{}
	r.items = r.items[1:]
	if len(r.items) == 0 {
		r.items = nil
	}
	r.base++
	r.bytes -= x.size()
	h.answerStray(&x)
}

func (r *recent) clear(h *Hub) {
	for len(r.items) > 0 {
		r.shift(h)
	}
}

// take copies events, by conversation and in seq order, and moves some of their ops along. An event that was remembered
// twice comes once, with its op if that is to be moved.
func (r *recent) take(want func(it *item) (yes, withOp bool)) map[string][]item {
	var taken map[string][]item
	for i := range r.items {
		x := &r.items[i]
		yes, withOp := want(x)
		if !yes {
			continue
		}
		if taken == nil {
			taken = map[string][]item{}
		}
		it := *x
		if withOp {
			x.op = nil
		} else {
			it.op = nil
		}
		taken[it.ev.Conv] = append(taken[it.ev.Conv], it)
	}
	for conv, items := range taken {
		slices.SortFunc(items, func(a, b item) int { return cmp.Or(bySeq(a, b), opsFirst(a, b)) })
		taken[conv] = slices.CompactFunc(items, func(kept, x item) bool { return kept.ev.Seq == x.ev.Seq })
	}
	return taken
}

func opsFirst(a, b item) int {
	switch {
	case a.op != nil && b.op == nil:
		return -1
	case a.op == nil && b.op != nil:
		return 1
	}
	return 0
}

// waitsForReader tells whether an op should wait with its event: its sender is connected here, but not known in the
// conversation (yet).
func (h *Hub) waitsForReader(it *item) bool {
	c := h.origin(it)
	return c != nil && c.user != nil && it.op != nil && !h.stopped
}

// answerStray answers an op for which no membership turned up.
func (h *Hub) answerStray(it *item) {
	if it.op == nil {
		return
	}
	c := h.origin(it)
	if c != nil && c.user != nil {
		if mk := c.marks[it.ev.Conv]; it.ev.Seq > max(mk.from, mk.delivered) {
			h.raise(c, it.ev.Conv, it.ev.Seq)
		}
	}
	h.answer(c, it)
}
