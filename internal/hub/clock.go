package hub

import (
	"context"
	"time"
)

// runClock ends waits whose time has come: for missing events, for readers, for the next try of a load.
func (h *Hub) runClock(ctx context.Context) {
	defer h.halt() // the context of Start may end without Stop
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if wait := h.tick(); wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-h.kick:
		case <-timer.C:
		}
	}
}

// tick does what is due, and returns how long to wait until more is; 0: until a kick.
func (h *Hub) tick() time.Duration {
	h.lock()
	defer h.unlock()
	var next time.Duration
	sooner := func(due time.Duration) {
		if due != 0 && (next == 0 || due < next) {
			next = due
		}
	}
	for cv := range h.gaps {
		for cv.due != 0 && cv.due <= h.now {
			h.expire(cv)
		}
		sooner(cv.due)
	}
	sooner(h.recent.trim(h))
	kept := h.later[:0]
	for _, j := range h.later {
		if j.due <= h.now {
			h.jobs = append(h.jobs, j)
			continue
		}
		kept = append(kept, j)
		sooner(j.due)
	}
	clear(h.later[len(kept):])
	h.later = kept
	h.startWorkers()
	h.armed = next
	if next == 0 {
		return 0
	}
	return max(next-h.now, 1)
}

// alarm has the clock look at the given time.
func (h *Hub) alarm(due time.Duration) {
	if h.armed != 0 && h.armed <= due {
		return
	}
	h.armed = due
	select {
	case h.kick <- struct{}{}:
	default:
	}
}
