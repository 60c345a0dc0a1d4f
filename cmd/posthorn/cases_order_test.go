package main

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// Rows that were read in order are written in order: on one socket the seqs of a conversation only rise, those of the own
// sends among them, while many send, the reader is slow, and two gateways feed it.
func TestB08_OrderOnTheWire(t *testing.T) {
	t.Run("one gateway", func(t *testing.T) {
		t.Parallel()
		inOrder(t, false, 1, 500)
	})
	t.Run("two gateways, four conversations", func(t *testing.T) {
		t.Parallel()
		inOrder(t, true, 4, 60)
	})
}

// ordered is what one socket was shown of each conversation.
type ordered struct {
	pause time.Duration
	done  chan struct{} // closed when every conversation has reached its end

	mu     sync.Mutex // guards what follows
	last   map[string]int64
	count  int
	hints  int
	faults []string
	ends   map[string]int64
}

func (o *ordered) Frame(d client.Direction, f wire.Frame, _ []byte) {
	if d != client.In {
		return
	}
	var conv string
	var seq, prev int64
	switch f := f.(type) {
	case *wire.Event:
		conv, seq, prev = f.Ev.Conv, f.Ev.Seq, f.Prev
		time.Sleep(o.pause) // sleep: a reader that takes its time is what the case is about
	case *wire.Sent:
		conv, seq, prev = f.Conv, f.Seq, f.Prev
	case *wire.Hint:
		o.mu.Lock()
		o.hints++
		o.mu.Unlock()
		return
	default:
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if seq <= o.last[conv] || prev > o.last[conv] {
		o.faults = append(o.faults, fmt.Sprintf("%s: %d (prev %d) after %d", conv, seq, prev, o.last[conv]))
	}
	o.last[conv], o.count = seq, o.count+1
	o.reached()
}

// reached closes done; o.mu is held.
func (o *ordered) reached() {
	for conv, end := range o.ends {
		if o.last[conv] < end {
			return
		}
	}
	select {
	case <-o.done:
	default:
		close(o.done)
	}
}

func (o *ordered) Stored(int, time.Duration) {}
func (o *ordered) State(client.State)        {}

func inOrder(t *testing.T, apart bool, convs, each int) {
	here := serve(t, pgtest.URL(t))
	there, writers := here, []*node{here}
	if apart {
		there = serve(t, here.url)
		writers = append(writers, there)
	}
	for _, user := range []string{"bo", "w0", "w1"} {
		here.token(t, user, "phone") // makes the user
	}
	opener := here.connect(t, "opener", "phone")
	ends := map[string]int64{}
	var names []string
	for i := range convs {
		conv := opener.group(fmt.Sprint("open", i), "bo", "w0", "w1")
		names, ends[conv] = append(names, conv), int64(1+each*len(writers))
	}
	watch := func(pause time.Duration) *ordered {
		o := &ordered{pause: pause, done: make(chan struct{}), last: map[string]int64{}, ends: ends}
		for conv := range ends {
			o.last[conv] = 1 // the open, known from subbed
		}
		return o
	}
	all := map[string]*ordered{"the slow reader": watch(5 * time.Millisecond)}
	peers := []*peer{there.connectWith(t, "bo", "phone", client.DialOptions{Tracer: all["the slow reader"]})}
	for i, n := range writers {
		name := fmt.Sprint("w", i)
		all[name] = watch(0)
		peers = append(peers, n.connectWith(t, name, "phone", client.DialOptions{Tracer: all[name]}))
	}
	var reading sync.WaitGroup
	for _, p := range peers {
		ask[*wire.Subbed](p, &wire.Sub{})
		reading.Go(func() {
			for range p.Frames() { // seen by the tracer
			}
		})
	}
	var writing sync.WaitGroup
	for i, p := range peers[1:] {
		writing.Go(func() {
			body := "x"
			for m := range each {
				for _, conv := range names {
					if err := p.Write(&wire.Send{RID: fmt.Sprint(m), Conv: conv, Cmid: fmt.Sprint(i, "-", m), Body: &body}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	writing.Wait()
	for name, o := range all {
		select {
		case <-o.done:
		case <-time.After(patience):
			t.Errorf("%s did not see the end", name)
		}
		o.mu.Lock()
		for _, f := range o.faults {
			t.Errorf("%s: %s", name, f)
		}
		// Nothing was dropped for the slow one: the sweep's hints, which tell that nobody acks, are no loss.
		if want := convs * each * len(writers); o.count != want {
			t.Errorf("%s saw %d of %d, with %d hints", name, o.count, want, o.hints)
		}
		o.mu.Unlock()
	}
	for _, p := range peers {
		_ = p.Close()
	}
	reading.Wait()
}
