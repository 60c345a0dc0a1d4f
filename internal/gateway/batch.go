package gateway

import "github.com/posthorn/posthorn/wire"

// batch is what the writer took. The writer owns it and uses it again.
type batch struct {
	items []item
	hints map[string]wire.Hint
	acked map[string]int64
	ping  bool
	pong  []byte
	end   *ending
	buf   []byte
}

// take moves everything into b; false: there was nothing. After an ending the queue is closed.
func (q *queue) take(b *batch) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if q.ending == nil && q.parting != nil && q.writes == 0 {
		q.ending = q.parting
	}
	b.items, q.items = q.items, b.items
	if q.asleep.Load() {
		b.items, q.items = q.held(b.items)
	}
	if len(b.items) > 0 || q.ackedNow || q.ending != nil {
		b.acked, q.acked, q.ackedNow = q.acked, nil, false
	}
	if !q.asleep.Load() {
		b.hints, q.hints = q.hints, nil
	}
	b.ping, q.ping = q.ping, false
	b.pong, q.pong = q.pong, nil
	if b.end = q.ending; b.end != nil {
		b.reduce()
		q.closed, q.items = true, nil
		return true
	}
	return len(b.items) > 0 || len(b.hints) > 0 || len(b.acked) > 0 || b.ping || b.pong != nil
}

// reduce leaves what is still written before the end.
func (b *batch) reduce() {
	b.ping, b.pong = false, nil
	if b.end.keep == keepAll {
		return
	}
	b.hints, b.acked = nil, nil
	kept := b.items[:0]
	for _, it := range b.items {
		if b.end.keep == keepReplies && !it.bounded() {
			kept = append(kept, it)
		}
	}
	clear(b.items[len(kept):])
	b.items = kept
}

// wrote gives back the room of a batch.
func (q *queue) wrote(b *batch) {
	pushes, bytes := 0, 0
	for i := range b.items {
		if b.items[i].bounded() {
			pushes++
			bytes += len(b.items[i].frame)
		}
	}
	if pushes == 0 {
		return
	}
	q.mu.Lock()
	q.pushes -= pushes
	q.pushBytes -= bytes
	q.mu.Unlock()
}
