package hub

import (
	"cmp"
	"time"

	"github.com/posthorn/posthorn"
)

// item is an event on its way.
type item struct {
	ev     *posthorn.Event
	op     *posthorn.Op // nil: none, or answered
	origin posthorn.Socket
	prev   int64 // for the sender
	epoch  int64
	at     time.Duration // when it came
	kept   bool          // ev is our own copy
	late   bool          // it fills a hole
}

func bySeq(a, b item) int { return cmp.Compare(a.ev.Seq, b.ev.Seq) }

// keep copies the event, so that what waits does not hold on to the memory of its batch.
func (it *item) keep() {
	if !it.kept {
		ev := *it.ev
		it.ev, it.kept = &ev, true
	}
}

// move copies an item to where it waits, and its op, which is answered once, with it.
func (it *item) move() item {
	it.keep()
	x := *it
	it.op = nil
	return x
}

// size is what the event counts for in bounds on bytes.
func (it *item) size() int {
	n := 256 + len(it.ev.Data)
	if it.ev.Body != nil {
		n += len(*it.ev.Body)
	}
	for _, u := range it.ev.Users {
		n += 16 + len(u)
	}
	return n
}
