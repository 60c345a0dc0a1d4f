package store

import (
	"sync"
	"time"

	"github.com/posthorn/posthorn"
)

type ackKey struct {
	device  int64
	install int64
	epoch   int64 // of the session: a seq counts in no other
	conv    string
}

// part is one ack as it came.
type part struct {
	seq  int64
	done func(int64, error)
}

type pendingAck struct {
	parts []part
	since time.Time
}

func (p *pendingAck) top() (seq int64) {
	for _, x := range p.parts {
		seq = max(seq, x.seq)
	}
	return seq
}

const (
	maxParts   = 128             // acks of one device in one conversation that wait for one flush
	flushRows  = 2000            // cursors in one flush
	ackPromise = 5 * time.Second // how long an ack waits for an absent database before its sender is told
)

// ackQueue gathers acks: the largest per (device, conversation) is written, all who asked are told.
type ackQueue struct {
	wake chan struct{} // capacity 1

	mu     sync.Mutex // guards what follows
	acks   map[ackKey]*pendingAck
	firsts []posthorn.Session
	max    int
	closed bool
}

func (q *ackQueue) init(l posthorn.Limits) {
	q.wake = make(chan struct{}, 1)
	q.acks = map[ackKey]*pendingAck{}
	q.max = l.AckQueue
}

// SubmitAck queues an ack; Done is called after the flush that holds it has committed.
func (s *Store) SubmitAck(a posthorn.Ack) {
	err := s.current(a.Viewer.Epoch)
	if err == nil {
		err = s.acks.add(ackKey{a.Viewer.DeviceID, a.Viewer.Install, a.Viewer.Epoch, a.Conv}, part{a.Seq, a.Done})
	}
	if err != nil && a.Done != nil {
		a.Done(0, err)
	}
}

func (q *ackQueue) add(k ackKey, x part) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.acks[k]
	switch {
	case q.closed:
		return unavailable("the server is shutting down", nil)
	case p == nil && len(q.acks) >= q.max, p != nil && len(p.parts) >= maxParts:
		return unavailable("too many acks are waiting", nil)
	case p == nil:
		p = &pendingAck{since: time.Now()}
		q.acks[k] = p
	}
	p.parts = append(p.parts, x)
	poke(q.wake)
	return nil
}

// putBack returns acks that have no outcome. Nothing is lost by that: a cursor only rises.
func (q *ackQueue) putBack(k ackKey, p *pendingAck) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.acks[k]; now != nil {
		p.parts = append(p.parts, now.parts...)
	}
	q.acks[k] = p
	poke(q.wake)
}

func (q *ackQueue) first(sess posthorn.Session) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.firsts) < q.max {
		q.firsts = append(q.firsts, sess)
	}
	poke(q.wake)
}

func (q *ackQueue) take() (map[ackKey]*pendingAck, []posthorn.Session) {
	q.mu.Lock()
	defer q.mu.Unlock()
	firsts := q.firsts
	q.firsts = nil
	if len(q.acks) <= flushRows {
		all := q.acks
		q.acks = map[ackKey]*pendingAck{}
		return all, firsts
	}
	some := make(map[ackKey]*pendingAck, flushRows)
	for k, p := range q.acks {
		if len(some) == flushRows {
			break
		}
		some[k] = p
		delete(q.acks, k)
	}
	poke(q.wake)
	return some, firsts
}

func (q *ackQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}
