package client

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/posthorn/posthorn"
)

// ErrOutboxFull is returned by Send and its kin at the outbox's bound; nothing was stored.
var ErrOutboxFull = errors.New("client: the outbox is full")

// outbox is the memory of what the store's outbox holds. It changes only after the store's commit: new items come in by
// the writer's goroutine, in the order of their numbers, and from then on an item is the session's, or once it has failed
// the application's to discard.
type outbox struct {
	maxItems, maxBytes int

	mu     sync.Mutex       // guards what follows
	items  map[uint64]*item // an item is replaced, never changed
	byCmid map[string]uint64
	waits  map[string]*Pending // by cmid
	fresh  []uint64            // numbers that the session has not taken up yet; at most the outbox's items
	bytes  int
	queued int // reserved by sends on their way to the store
	closed bool
}

func newOutbox(maxItems, maxBytes int, all []keyed) *outbox {
	o := &outbox{maxItems: maxItems, maxBytes: maxBytes, items: map[uint64]*item{}, byCmid: map[string]uint64{}, waits: map[string]*Pending{}}
	for _, x := range all {
		o.put(x.key, x.item)
	}
	return o
}

// reserve makes room for an item and makes its handle. Where the outbox knows the cmid already, the same content gives
// the handle of the first call (old) and other content is refused, as the server would.
func (o *outbox) reserve(it *item) (p *Pending, old bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, false, ErrClosed
	}
	if p, known := o.handle(it.Cmid); known != nil {
		if !known.same(it) {
			return nil, false, posthorn.Errorf(posthorn.CodeCmidReused, "the outbox holds other content under this cmid")
		}
		return p, true, nil
	}
	if len(o.items)+o.queued >= o.maxItems || o.bytes+it.size() > o.maxBytes {
		return nil, false, ErrOutboxFull
	}
	o.queued++
	o.bytes += it.size()
	p = newPending(it)
	o.waits[it.Cmid] = p
	return p, false, nil
}

// handle finds the item of a cmid and its handle; one from before a restart gets a new handle.
func (o *outbox) handle(cmid string) (*Pending, *item) {
	if p := o.waits[cmid]; p != nil {
		return p, p.item
	}
	it := o.items[o.byCmid[cmid]]
	if it == nil {
		return nil, nil
	}
	p := newPending(it)
	if it.failed() {
		p.settle(Sent{}, it.err())
	} else {
		o.waits[cmid] = p
	}
	return p, it
}

// release undoes reserve; where the item was stored, put has counted it by now.
func (o *outbox) release(it *item, stored bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued--
	o.bytes -= it.size()
	if !stored {
		delete(o.waits, it.Cmid)
	}
}

// put shows a stored item, new or changed, and gives it to the session where it may be sent.
func (o *outbox) put(key uint64, it item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old := o.items[key]; old != nil {
		o.bytes -= old.size()
	}
	o.items[key] = &it
	o.byCmid[it.Cmid] = key
	o.bytes += it.size()
	if !it.failed() && !it.waiting() {
		o.fresh = append(o.fresh, key)
	}
}

func (o *outbox) remove(key uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	it := o.items[key]
	if it == nil {
		return
	}
	o.bytes -= it.size()
	delete(o.items, key)
	delete(o.byCmid, it.Cmid)
}

// resolve ends the handle of a cmid, where somebody holds one.
func (o *outbox) resolve(cmid string, s Sent, err error) {
	o.mu.Lock()
	p := o.waits[cmid]
	delete(o.waits, cmid)
	o.mu.Unlock()
	if p != nil {
		p.settle(s, err)
	}
}

// get gives an item that may be sent, or nil.
func (o *outbox) get(key uint64) *item {
	o.mu.Lock()
	defer o.mu.Unlock()
	if it := o.items[key]; it != nil && !it.failed() && !it.waiting() {
		return it
	}
	return nil
}

func (o *outbox) find(cmid string) (uint64, *item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, ok := o.byCmid[cmid]
	if !ok {
		return 0, nil
	}
	return key, o.items[key]
}

// takeFresh hands over what came since the last call; with all, everything that may be sent.
func (o *outbox) takeFresh(all bool) []keyed {
	o.mu.Lock()
	defer o.mu.Unlock()
	keys := o.fresh
	o.fresh = nil
	if all {
		keys = keys[:0]
		for key := range o.items {
			keys = append(keys, key)
		}
	}
	var out []keyed
	for _, key := range keys {
		if it := o.items[key]; it != nil && !it.failed() && !it.waiting() {
			out = append(out, keyed{key, *it})
		}
	}
	slices.SortFunc(out, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	return out
}

// list copies the items that pick wants, in their order.
func (o *outbox) list(pick func(*item) bool) []keyed {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []keyed
	for key, it := range o.items {
		if pick(it) {
			out = append(out, keyed{key, *it})
		}
	}
	slices.SortFunc(out, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	return out
}

// close ends the handles that are left; the items stay in the store.
func (o *outbox) close() {
	o.mu.Lock()
	waits := o.waits
	o.waits, o.closed = map[string]*Pending{}, true
	o.mu.Unlock()
	for _, p := range waits {
		p.settle(Sent{}, ErrClosed)
	}
}
