package gateway

import (
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// Suspend is called when this gateway has been without the database for so long that another one may serve its devices,
// and when that is over. While it is on, no push is written, no ack is taken and every request but ping gets UNAVAILABLE;
// the sockets stay, heartbeats go on. Events that waited become hints, which are written once it is off, as are the conv
// frames that waited: nothing is lost by it. It does not block. A frame that a writer is handing to the network at this moment still leaves.
func (g *Gateway) Suspend(on bool) {
	g.suspending.Lock()
	defer g.suspending.Unlock()
	g.mu.Lock()
	g.suspended = on // sockets that come from now on are told by add
	g.mu.Unlock()
	g.each(func(s *socket) { s.q.sleep(on) })
}

// sleep holds back pushes and hints, or lets them go on.
func (q *queue) sleep(on bool) {
	q.mu.Lock()
	q.asleep.Store(on)
	if on {
		kept := q.items[:0]
		for _, it := range q.items {
			if it.kind != event {
				kept = append(kept, it)
				continue
			}
			q.pushes--
			q.pushBytes -= len(it.frame)
			q.miss(&it)
		}
		clear(q.items[len(kept):])
		q.items = kept
	}
	q.mu.Unlock()
	q.ring()
}

// miss turns a push that will not be written into a hint. The caller holds mu.
func (q *queue) miss(it *item) {
	if q.closed {
		return
	}
	if q.hints == nil {
		q.hints = map[string]wire.Hint{}
	}
	h := q.hints[it.conv]
	q.hints[it.conv] = wire.Hint{Conv: it.conv, Head: max(h.Head, it.seq), RV: h.RV, Why: "overflow"}
}

// held splits off the conv frames, which wait until it is over. The caller holds mu.
func (q *queue) held(items []item) (now, later []item) {
	for _, it := range items {
		if it.conv != "" {
			later = append(later, it)
		} else {
			now = append(now, it)
		}
	}
	return now, later
}

// skip tells the writer whether to leave a push out that it has taken already; it is hinted later.
func (q *queue) skip(it *item) bool {
	if it.kind != event || !q.asleep.Load() {
		return false
	}
	q.mu.Lock()
	q.miss(it)
	q.mu.Unlock()
	return true
}

// away is why nothing is answered while suspended.
func away() *posthorn.Error {
	return &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: "this gateway has lost the database", Retry: time.Second}
}
