package hub

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"pgregory.net/rapid"
)

// route is one session of a device, here or on another gateway.
type route struct {
	*socket
	here, said, registered, ended bool
}

func (r *route) gen() int64 { return r.viewer.Generation }

// byes counts what it was told of its end.
func (r *route) byes() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.log {
		if x.what == "bye" {
			n++
		}
	}
	return n
}

// liveOf gives the generation of the device's connection; 0: none.
func (h *house) liveOf(device int64) int64 {
	for _, v := range h.Devices() {
		if v.DeviceID == device {
			return v.Generation
		}
	}
	return 0
}

// TestG1_B21_HighestGenerationLives: goal: G1 on one gateway, and B21's late close. Method: sessions of one device say hello
// in order, some here and some elsewhere; registering, closing, and the reading of signals, those that Log.Registered asks
// for too, come in any order. In the end the newest session is the only one that lives, the others that were here were told
// once, and the user's other device has noticed nothing.
func TestG1_B21_HighestGenerationLives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := 2 + evenly(rt, 4)
		elsewhere := evenly(rt, 1<<n)
		script := make([]int, 10+evenly(rt, 40))
		for i := range script {
			script[i] = evenly(rt, 1000)
		}
		var err error
		inHouse(t, nil, func(h *house) { err = h.routes(n, elsewhere, script) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func (h *house) routes(n, elsewhere int, script []int) error {
	h.w.open("c", posthorn.Group, "ann", "bob")
	other := h.join("ann", 2)
	all := make([]*route, n)
	for i := range all {
		v := posthorn.Viewer{User: "ann", DeviceID: 1, Generation: int64(i) + 1}
		all[i] = &route{socket: &socket{viewer: v}, here: elsewhere>>i&1 == 0}
	}
	stored := int64(0) // the generation in the database
	hello := func(r *route) {
		if r.gen() == stored+1 {
			stored, r.said = r.gen(), true
		}
	}
	register := func(r *route) {
		if r.said && r.here && !r.registered {
			r.registered = true
			h.Register(r.socket)
		}
	}
	for _, x := range script {
		r := all[x%n]
		before := h.liveOf(1)
		switch x / n % 5 {
		case 0:
			hello(all[min(stored, int64(n-1))])
		case 1:
			register(r)
			if live := h.liveOf(1); live < before {
				return fmt.Errorf("%d gave way to %d", before, live)
			}
			if r.registered && before == 0 && h.liveOf(1) == r.gen() {
				h.sub(r.socket)
			}
		case 2: // the signal of a hello is read, perhaps again
			if r.said {
				h.Replaced(1, r.gen())
			}
		case 3: // what Log.Registered asks for
			if r.registered {
				h.Replaced(1, stored)
			}
		case 4:
			if !r.registered {
				continue
			}
			r.ended = r.ended || before == r.gen()
			h.Unregister(r.socket)
			if live := h.liveOf(1); before != r.gen() && live != before {
				return fmt.Errorf("the late end of %d took %d, %d is left", r.gen(), before, live)
			}
		}
	}
	for _, r := range all {
		hello(r)
	}
	for _, r := range slices.Backward(all) {
		register(r)
	}
	h.Replaced(1, stored)
	newest, want := all[n-1], int64(0)
	if newest.here && !newest.ended {
		want = newest.gen()
	}
	if live := h.liveOf(1); live != want {
		return fmt.Errorf("%d lives, want %d", live, want)
	}
	for _, r := range all {
		told := 1
		if !r.here || r.ended || r == newest {
			told = 0
		}
		if got := r.byes(); got != told {
			return fmt.Errorf("%d was told %d times that it ends, want %d: %v", r.gen(), got, told, r.log)
		}
	}
	for _, r := range all {
		if r != newest {
			h.Unregister(r.socket)
		}
	}
	if live := h.liveOf(1); live != want {
		return fmt.Errorf("late ends leave %d, want %d", live, want)
	}
	h.tail(h.say("c", "bob"))
	if got := other.take(); !slices.Equal(got, []string{"event c/2<1"}) {
		return fmt.Errorf("the other device was told %v", got)
	}
	return nil
}

// TestG1_SubsWhileAllIsClosed: subs, deliveries and acks meet new epochs, replacements and revocations. Every op is
// answered once, nobody who was closed is pushed anything afterwards, and nothing stays behind.
func TestG1_SubsWhileAllIsClosed(t *testing.T) {
	h := newHouse(t, func(l *posthorn.Limits) { l.HubBuffer, l.HoldGap = 16, 20*time.Millisecond })
	h.Start(t.Context())
	defer h.Stop(context.Background())
	const devices, rounds = 4, 300
	open := h.w.open("c", posthorn.Group, "u0", "u1")
	var gens, ops, dones counter
	var closers, others sync.WaitGroup
	stop := make(chan struct{})
	for i := range int64(devices) {
		others.Go(func() {
			for range rounds {
				s := &closable{socket: socket{viewer: posthorn.Viewer{User: fmt.Sprint("u", i%2), DeviceID: i, Generation: gens.add()}}}
				h.Register(s)
				if activate, err := h.Subscribe(t.Context(), s); err == nil {
					activate()
					h.Heard(s, "c", 1)
					h.Delivered(i, "c", 1)
					op := &posthorn.Op{Kind: posthorn.KindMsg, Conv: "c", Sender: s.viewer.User, Origin: s, Done: func(posthorn.Outcome) { dones.add() }}
					ops.add()
					h.Deliver([]posthorn.Committed{{Event: h.say("c", s.viewer.User), Op: op, Epoch: 1}})
				}
				if s.late.Load() > 0 {
					t.Error("pushed after its bye")
				}
				h.Unregister(s)
			}
		})
	}
	for _, closes := range []func(){
		func() { h.NewEpoch(1 + gens.get()%2) }, // what is delivered is of epoch 1
		func() { h.Replaced(gens.get()%devices, gens.get()) },
		func() { h.Revoked(gens.get() % devices) },
		func() { h.tail(open, h.say("c", "u1")) },
		func() {
			h.Correct(h.Caught(9))
			h.Behind("c", 9)
			h.Unaware("c", []string{"u0"}, 1)
			h.Devices()
		},
	} {
		closers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					closes()
				}
			}
		})
	}
	others.Wait()
	close(stop)
	closers.Wait()
	h.NewEpoch(3)
	poll, patience := time.NewTicker(time.Millisecond), time.After(10*time.Second)
	defer poll.Stop()
	for err := h.empty(); err != nil; err = h.empty() { // what waits for its reader does so for HoldGap
		select {
		case <-poll.C:
		case <-patience:
			t.Fatal(err)
		}
	}
	if ops.get() != dones.get() {
		t.Errorf("%d of %d ops were answered", dones.get(), ops.get())
	}
}

type counter struct{ n atomic.Int64 }

func (c *counter) add() int64 { return c.n.Add(1) }
func (c *counter) get() int64 { return c.n.Load() }

// closable counts what it is pushed after its bye.
type closable struct {
	socket
	closed atomic.Bool
	late   atomic.Int64
}

func (s *closable) Close(posthorn.Code) { s.closed.Store(true) }

func (s *closable) PushEvent([]byte, string, int64) bool {
	if s.closed.Load() {
		s.late.Add(1)
	}
	return true
}
