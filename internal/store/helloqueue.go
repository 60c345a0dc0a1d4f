package store

import (
	"context"
	"sync"

	"github.com/posthorn/posthorn"
)

const (
	helloFlush = 256  // sessions in one transaction
	maxHellos  = 8192 // that wait, and registrations likewise
)

// helloQueue gathers sessions to be begun: thousands come at once after a restart, and one transaction for each would
// hold them up by a flush to disk. What comes while one is in flight is the next one.
type helloQueue struct {
	wake chan struct{} // capacity 1

	mu         sync.Mutex // guards what follows
	asked      []*helloAsked
	registered []posthorn.Viewer
	connection int64 // numbers the connections of this process
	closed     bool
}

type helloAsked struct {
	posthorn.Hello
	connection int64
	gone       context.Context // nobody waits any more
	answer     chan helloAnswer
}

type helloAnswer struct {
	session posthorn.Session
	err     error
}

func (q *helloQueue) add(a *helloAsked) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.asked) >= maxHellos {
		return unavailable("too many devices connect at once", nil)
	}
	q.connection++
	a.connection = q.connection
	q.asked = append(q.asked, a)
	poke(q.wake)
	return nil
}

func (q *helloQueue) take() ([]*helloAsked, []posthorn.Viewer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.asked), helloFlush)
	batch := append([]*helloAsked(nil), q.asked[:n]...)
	q.asked = append(q.asked[:0], q.asked[n:]...)
	clear(q.asked[len(q.asked):cap(q.asked)])
	registered := q.registered
	q.registered = nil
	if len(q.asked) > 0 {
		poke(q.wake)
	}
	return batch, registered
}

func (q *helloQueue) close() {
	q.mu.Lock()
	asked := q.asked
	q.asked, q.closed = nil, true
	q.mu.Unlock()
	for _, a := range asked {
		a.answer <- helloAnswer{err: unavailable("the server is shutting down", nil)}
	}
}
