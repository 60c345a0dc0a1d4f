package store

import (
	"sync"
	"time"

	"github.com/posthorn/posthorn"
)

// queue holds the ops that wait for a transaction. Messages go into one queue that the batcher drains whole while the
// previous COMMIT is in flight. What changes members, and what must wait for a stranger's lock, goes into a lane of its
// conversation; later ops of that conversation follow it there until the lane is empty, so that order is kept and no send
// waits for another conversation's lock.
type queue struct {
	limits posthorn.Limits
	wake   chan struct{} // the batcher; capacity 1
	ready  chan struct{} // a lane worker; capacity 1

	mu      sync.Mutex // guards everything below; held for moments only
	ops     []*posthorn.Op
	count   int // ops in ops, in flight and in lanes
	bytes   int
	pending map[string]int // ops of a conversation in ops or in the batch in flight
	lanes   map[string]*lane
	order   []string // lanes in the order in which they get their turn
	closed  bool
}

func (q *queue) init(l posthorn.Limits) {
	q.limits = l
	q.wake = make(chan struct{}, 1)
	q.ready = make(chan struct{}, 1)
	q.pending = map[string]int{}
	q.lanes = map[string]*lane{}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Submit queues an op; at a bound Done gets UNAVAILABLE at once.
func (s *Store) Submit(op *posthorn.Op) {
	if op.Submitted.IsZero() {
		op.Submitted = time.Now()
	}
	if err := s.queue.add(op); err != nil {
		op.Done(posthorn.Outcome{Err: err})
	}
}

func (q *queue) add(op *posthorn.Op) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return unavailable("the server is shutting down", nil)
	case q.count >= q.limits.SendQueue || q.bytes+op.Size() > q.limits.SendQueueBytes:
		return unavailable("the send queue is full", nil)
	}
	q.count++
	q.bytes += op.Size()
	if l := q.lanes[op.Conv]; l != nil {
		l.ops = append(l.ops, op) // its worker looks again after each turn
		return nil
	}
	if op.Kind != posthorn.KindMsg {
		l := q.lane(op.Conv)
		l.ops = append(l.ops, op)
		poke(q.ready)
		return nil
	}
	q.ops = append(q.ops, op)
	q.pending[op.Conv]++
	poke(q.wake)
	return nil
}

// take removes the next batch from the queue; empty when nothing waits.
func (q *queue) take() []*posthorn.Op {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.ops) && n < q.limits.BatchSends {
		size += q.ops[n].Size()
		if n > 0 && size > q.limits.BatchBytes {
			break
		}
		n++
	}
	batch := append([]*posthorn.Op(nil), q.ops[:n]...)
	rest := copy(q.ops, q.ops[n:])
	clear(q.ops[rest:])
	q.ops = q.ops[:rest]
	return batch
}

// settle ends a batch of the main queue. Ops in locked have no outcome yet: they go to the front of their lanes, and what
// had queued behind them in the same conversations goes with them.
func (q *queue) settle(batch, locked []*posthorn.Op) {
	q.mu.Lock()
	defer q.mu.Unlock()
	moved := map[string][]*posthorn.Op{}
	for _, op := range locked {
		moved[op.Conv] = append(moved[op.Conv], op)
		q.count++ // forget, below, takes the whole batch off
		q.bytes += op.Size()
	}
	if len(moved) > 0 {
		kept := q.ops[:0]
		for _, op := range q.ops {
			if _, ok := moved[op.Conv]; ok {
				moved[op.Conv] = append(moved[op.Conv], op)
				q.left(op.Conv)
			} else {
				kept = append(kept, op)
			}
		}
		clear(q.ops[len(kept):])
		q.ops = kept
	}
	for conv, ops := range moved {
		l := q.lane(conv)
		l.ops = append(ops, l.ops...)
	}
	for _, op := range batch {
		q.left(op.Conv)
	}
	q.forget(batch)
}

// left notes that an op of the conversation is no longer before its lane.
func (q *queue) left(conv string) {
	if q.pending[conv]--; q.pending[conv] <= 0 {
		delete(q.pending, conv)
	}
}

// forget gives back the room of ops that have their outcome, and wakes whoever waits for that.
func (q *queue) forget(ops []*posthorn.Op) {
	for _, op := range ops {
		q.count--
		q.bytes -= op.Size()
	}
	poke(q.ready)
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	poke(q.wake)
	poke(q.ready)
}

// abandon refuses what is still queued; what is in flight ends by itself.
func (q *queue) abandon() {
	q.mu.Lock()
	ops := q.ops
	q.ops = nil
	for _, op := range ops {
		q.left(op.Conv)
	}
	for _, l := range q.lanes {
		ops = append(ops, l.ops[l.running:]...)
		l.ops = l.ops[:l.running]
	}
	q.forget(ops)
	q.mu.Unlock()
	for _, op := range ops {
		op.Done(posthorn.Outcome{Err: unavailable("the server is shutting down", nil)})
	}
	poke(q.wake)
}

// drained tells whether nothing will come any more.
func (q *queue) drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && len(q.ops) == 0
}

// runBatcher drains the queue: one transaction in flight, no delay; what arrives meanwhile is the next batch.
func (s *Store) runBatcher() {
	defer s.senders.Done()
	w := s.newWriter("batch")
	defer w.close()
	for {
		batch := s.queue.take()
		if len(batch) == 0 {
			if s.queue.drained() {
				return
			}
			<-s.queue.wake
			continue
		}
		s.queue.settle(batch, s.sendBatch(w, batch, s.cfg.Limits.LockTimeout, true))
	}
}
