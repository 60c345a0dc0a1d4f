package client

import (
	"sync"

	"github.com/posthorn/posthorn"
)

// ChangeKind says which fields of a Change are set.
type ChangeKind int

const (
	ChangeEvent    ChangeKind = iota + 1 // Event: it became part of the contiguous log
	ChangeItem                           // Item: it was queued, waits, or failed
	ChangeSent                           // Item and Sent: it was answered and has left the outbox
	ChangeConv                           // Entry: a conversation's entry came or changed
	ChangeReset                          // Conv: its log was cut back to the common past; read it again
	ChangeState                          // State: the connection's
	ChangeOverflow                       // the reader was too slow and changes are missing here: read everything again
	ChangeTyping                         // Conv and User: a member is writing just now; some of these are lost
)

// Change is one line of a Feed.
type Change struct {
	Kind  ChangeKind
	Conv  string
	Event posthorn.Event
	Item  Item
	Sent  Sent
	Entry posthorn.Entry
	State State
	User  string
}

// Feed tells of changes as they happen. It never holds the client up: a reader that lags by more than the buffer finds
// one ChangeOverflow in the place of what it missed.
type Feed struct {
	c    chan Change // one more than the buffer, for the overflow mark; closed by Close
	hub  *feeds
	lost bool // guarded by hub.mu
}

// C gives the changes; it is closed by Close of the feed or of the client.
func (f *Feed) C() <-chan Change { return f.c }

// Close ends the feed; legal twice.
func (f *Feed) Close() {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	if _, ok := f.hub.all[f]; ok {
		delete(f.hub.all, f)
		close(f.c)
	}
}

// offer queues a change. Only the publisher fills the channel, so its length can only fall meanwhile: the last place is
// free for the mark whenever nothing was lost since the mark before.
func (f *Feed) offer(ch Change) {
	switch {
	case len(f.c) < cap(f.c)-1:
		f.c <- ch
		f.lost = false
	case !f.lost:
		f.c <- Change{Kind: ChangeOverflow}
		f.lost = true
	}
}

// feeds are the readers of one client.
type feeds struct {
	mu     sync.Mutex // guards what follows
	all    map[*Feed]struct{}
	closed bool
}

// Subscribe begins a feed that buffers up to buffer changes (at least 1).
func (c *Client) Subscribe(buffer int) *Feed {
	f := &Feed{c: make(chan Change, max(buffer, 1)+1), hub: &c.feeds}
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	if f.hub.closed {
		close(f.c)
		return f
	}
	if f.hub.all == nil {
		f.hub.all = map[*Feed]struct{}{}
	}
	f.hub.all[f] = struct{}{}
	return f
}

func (h *feeds) publish(changes ...Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.all {
		for _, ch := range changes {
			f.offer(ch)
		}
	}
}

func (h *feeds) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for f := range h.all {
		close(f.c)
	}
	h.all = nil
}
