package gateway

import (
	"sync"
	"sync/atomic"

	"github.com/posthorn/posthorn/wire"
)

type kind uint8

const (
	reply     kind = iota // answers a request and always fits: requests in flight are bounded
	sentReply             // the sent that answers a send
	event                 // an event frame; bounded
	notice                // a conv frame, or an error that answers no request; bounded
)

type item struct {
	frame []byte
	kind  kind
	req   *request // of a reply: its slot is given back once the reply is written
	conv  string   // of a push, and
	seq   int64    // what a hint in its place would say
}

func (it *item) bounded() bool { return it.kind >= event }

// queue is what waits to be written to one socket: one line, in the order in which it was filled, and beside it what may
// be merged. Filling it never blocks. The writer takes everything at once; what it took counts until it is written.
type queue struct {
	maxPushes, maxBytes int
	wake                chan struct{} // of capacity 1: there may be something to take
	asleep              atomic.Bool   // suspended; changed under mu

	mu        sync.Mutex // guards what follows
	items     []item
	pushes    int // bounded items that are not written yet, and their bytes
	pushBytes int
	hints     map[string]wire.Hint // newest per conversation
	acked     map[string]int64     // largest per conversation, for acks without rid
	ackedNow  bool                 // do not wait for a push
	ackedDue  bool                 // listed with the gateway
	ping      bool
	pong      []byte // payload of the newest ping; nil: none
	writes    int    // writing requests that are not answered
	parting   *ending
	ending    *ending
	closed    bool
}

func (q *queue) init(maxPushes, maxBytes int) {
	q.maxPushes, q.maxBytes, q.wake = maxPushes, maxBytes, make(chan struct{}, 1)
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// push adds a bounded item; false: full or closed.
func (q *queue) push(it item) bool {
	q.mu.Lock()
	ok := !q.closed && (!q.asleep.Load() || it.conv == "") && q.pushes < q.maxPushes && q.pushBytes+len(it.frame) <= q.maxBytes
	if ok {
		q.items = append(q.items, it)
		q.pushes++
		q.pushBytes += len(it.frame)
	}
	q.mu.Unlock()
	if ok {
		q.ring()
	}
	return ok
}

func (q *queue) hint(h wire.Hint) bool {
	q.mu.Lock()
	ok := !q.closed
	if ok {
		if q.hints == nil {
			q.hints = map[string]wire.Hint{}
		}
		q.hints[h.Conv] = h
	}
	q.mu.Unlock()
	if ok {
		q.ring()
	}
	return ok
}

// answered merges an acked; true: the gateway must see to it that it is not waiting for ever. A reader so slow that as
// many conversations wait as pushes may is told no more: an acked that is lost only means another ack.
func (q *queue) answered(conv string, delivered int64) (list bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if q.acked == nil {
		q.acked = map[string]int64{}
	}
	if old, ok := q.acked[conv]; !ok && len(q.acked) >= q.maxPushes {
		return false
	} else if !ok || delivered > old {
		q.acked[conv] = delivered
	}
	list = !q.ackedDue
	q.ackedDue = true
	return list
}

func (q *queue) flushAcked() {
	q.mu.Lock()
	q.ackedNow, q.ackedDue = true, false
	q.mu.Unlock()
	q.ring()
}

func (q *queue) control(ping bool, pong []byte) {
	q.mu.Lock()
	q.ping = q.ping || ping
	if pong != nil {
		q.pong = pong
	}
	q.mu.Unlock()
	q.ring()
}
