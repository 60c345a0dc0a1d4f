package store

import (
	"time"

	"github.com/posthorn/posthorn"
)

// lanes is how many conversations can wait for a stranger's lock, or change members, at once in one gateway.
const lanes = 2

// laneWait is how long a worker waits for one conversation's lock before another conversation gets its turn.
const laneWait = 250 * time.Millisecond

// lane is the second queue of one conversation. It ends when it is empty.
type lane struct {
	conv    string
	ops     []*posthorn.Op
	running int // the first ones of ops are with a worker
}

// lane finds or begins the lane of a conversation. The caller holds mu.
func (q *queue) lane(conv string) *lane {
	l := q.lanes[conv]
	if l == nil {
		l = &lane{conv: conv}
		q.lanes[conv] = l
		q.order = append(q.order, conv)
	}
	return l
}

// takeLane picks a conversation whose older ops have left the main queue: one change, or a run of messages.
func (q *queue) takeLane() (l *lane, ops []*posthorn.Op, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, conv := range q.order {
		l := q.lanes[conv]
		if l.running > 0 || len(l.ops) == 0 || q.pending[conv] > 0 {
			continue
		}
		n, size := 0, 0
		for n < len(l.ops) && n < q.limits.BatchSends && l.ops[n].Kind == posthorn.KindMsg {
			if size += l.ops[n].Size(); n > 0 && size > q.limits.BatchBytes {
				break
			}
			n++
		}
		l.running = max(n, 1)
		return l, append([]*posthorn.Op(nil), l.ops[:l.running]...), false
	}
	return nil, nil, q.closed && q.count == 0
}

// settleLane ends a turn: the ops that were running have their outcome, save those in left. The next conversation gets
// its turn.
func (q *queue) settleLane(l *lane, ran, left []*posthorn.Op) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.ops = append(append([]*posthorn.Op(nil), left...), l.ops[l.running:]...)
	l.running = 0
	for _, op := range left {
		q.count++ // forget takes all of ran off
		q.bytes += op.Size()
	}
	q.forget(ran)
	for i, conv := range q.order {
		if conv == l.conv {
			q.order = append(q.order[:i], q.order[i+1:]...)
			break
		}
	}
	if len(l.ops) == 0 {
		delete(q.lanes, l.conv)
		return
	}
	q.order = append(q.order, l.conv)
}

// runLane is a worker: it may wait for locks, so the batcher need not.
func (s *Store) runLane(name string) {
	defer s.senders.Done()
	w := s.newWriter(name)
	defer w.close()
	for {
		l, ops, over := s.queue.takeLane()
		if over {
			poke(s.queue.ready) // the other worker
			return
		}
		if l == nil {
			<-s.queue.ready
			continue
		}
		poke(s.queue.ready) // another lane may be ready for the other worker
		// What stays is locked still. Those who have waited long enough are told, oldest first.
		left := s.runTurn(w, ops)
		for len(left) > 0 && time.Since(left[0].Submitted) > s.cfg.Limits.LaneDeadline {
			left[0].Done(posthorn.Outcome{Err: unavailable("the conversation is locked by a long transaction", nil)})
			left = left[1:]
		}
		s.queue.settleLane(l, ops, left)
	}
}

// runTurn carries out a lane's run and returns the ops for which the lock was not to be had.
func (s *Store) runTurn(w *writer, ops []*posthorn.Op) []*posthorn.Op {
	if ops[0].Kind == posthorn.KindMsg {
		return s.sendBatch(w, ops, laneWait, false)
	}
	if s.change(w, ops[0], laneWait) {
		return nil
	}
	return ops
}
