package hub

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn"
)

// house is a hub with its world. Everything runs on fake time.
type house struct {
	t *testing.T
	*Hub
	w *world

	encoded int
}

// inHouse runs a test in a bubble of fake time.
func inHouse(t *testing.T, change func(*posthorn.Limits), f func(h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, change)
		h.Start(t.Context())
		defer h.Stop(context.Background())
		f(h)
	})
}

func newHouse(t *testing.T, change func(*posthorn.Limits)) *house {
	l := posthorn.DefaultLimits()
	l.SweepInterval = 0
	if change != nil {
		change(&l)
	}
	h := &house{t: t, w: newWorld()}
	h.Hub = New(Config{Loader: h.w, Limits: l, Encode: func(ev *posthorn.Event, prev int64) []byte {
		h.encoded++
		return binary.BigEndian.AppendUint64(nil, uint64(prev))
	}})
	return h
}

// sleep lets fake time pass.
func (h *house) sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// pass lets a call that waits at its gate go on: device number, conv[users] or conv+device number.
func (h *house) pass(name string) {
	h.t.Helper()
	synctest.Wait()
	i := slices.IndexFunc(h.w.calls, func(c *call) bool { return c.name == name })
	if i < 0 {
		h.t.Fatalf("no call %q waits", name)
	}
	h.w.step(i)
	synctest.Wait()
}

// told is what a socket was given.
type told struct {
	what      string // event, sent, conv, hint, bye
	conv      string
	seq, prev int64 // of event and sent; seq is the head of hint and conv
	why       string
	entry     posthorn.Entry
}

func (x told) String() string {
	switch x.what {
	case "event", "sent":
		return fmt.Sprintf("%s %s/%d<%d", x.what, x.conv, x.seq, x.prev)
	case "bye":
		return "bye " + x.why
	case "typing":
		return fmt.Sprintf("typing %s %s", x.conv, x.why)
	case "hint":
		return fmt.Sprintf("hint %s/%d %s", x.conv, x.seq, x.why)
	}
	return fmt.Sprintf("%s %s/%d", x.what, x.conv, x.seq)
}

// socket writes down what it is given.
type socket struct {
	viewer posthorn.Viewer

	full atomic.Bool // events and conv frames find no room
	mu   sync.Mutex
	log  []told
}

func (s *socket) Viewer() posthorn.Viewer { return s.viewer }

func (s *socket) add(x told) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, x)
}

func (s *socket) PushEvent(frame []byte, conv string, seq int64) bool {
	if s.full.Load() {
		return false
	}
	s.add(told{what: "event", conv: conv, seq: seq, prev: int64(binary.BigEndian.Uint64(frame))})
	return true
}

func (s *socket) PushConv(e posthorn.Entry) bool {
	if s.full.Load() {
		return false
	}
	s.add(told{what: "conv", conv: e.Conv, seq: e.Head, entry: e})
	return true
}

func (s *socket) PushTyping(conv, user string) bool {
	s.add(told{what: "typing", conv: conv, why: user})
	return true
}

func (s *socket) PushHint(conv string, head, _ int64, why string) bool {
	s.add(told{what: "hint", conv: conv, seq: head, why: why})
	return true
}

func (s *socket) Close(code posthorn.Code) { s.add(told{what: "bye", why: string(code)}) }

// take returns what was told since the last take.
func (s *socket) take() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, x := range s.log {
		all = append(all, x.String())
	}
	s.log = nil
	return all
}

// hello registers a socket of a device.
func (h *house) hello(user string, device int64) *socket {
	s := &socket{viewer: posthorn.Viewer{User: user, DeviceID: device, Device: fmt.Sprint("d", device)}}
	h.Register(s)
	return s
}

// join is hello and sub.
func (h *house) join(user string, device int64) *socket {
	h.t.Helper()
	s := h.hello(user, device)
	h.sub(s)
	return s
}

func (h *house) sub(s *socket) {
	h.t.Helper()
	activate, err := h.Subscribe(h.t.Context(), s)
	if err != nil {
		h.t.Fatal(err)
	}
	activate()
}

// say commits a message and returns it, not yet delivered.
func (h *house) say(conv, sender string) posthorn.Event {
	return h.w.commit(conv, posthorn.KindMsg, sender)
}

// tail delivers events as the log tail does.
func (h *house) tail(events ...posthorn.Event) {
	var all []posthorn.Committed
	for _, ev := range events {
		all = append(all, posthorn.Committed{Event: ev, Prev: ev.Seq - 1, Epoch: 1})
	}
	h.Deliver(all)
}

// own delivers an event with its op, as the batch does from memory. The answer goes to the socket.
func (h *house) own(ev posthorn.Event, s *socket) {
	op := &posthorn.Op{Kind: ev.Kind, Conv: ev.Conv, Sender: ev.Sender, DeviceID: s.viewer.DeviceID, Origin: s}
	op.Done = func(o posthorn.Outcome) { s.add(told{what: "sent", conv: o.Conv, seq: o.Seq, prev: o.Prev}) }
	h.Deliver([]posthorn.Committed{{Event: ev, Op: op, Prev: ev.Seq - 1, Epoch: 1}})
}

func (h *house) want(s *socket, want ...string) {
	h.t.Helper()
	if got := s.take(); !slices.Equal(got, want) {
		h.t.Fatalf("%s on device %d was told\n%q, want\n%q", s.viewer.User, s.viewer.DeviceID, got, want)
	}
}

// lags lists the lag set of a device, by conversation.
func (h *house) lags(device int64) map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]int64{}
	if c := h.devices[device]; c != nil {
		for conv, e := range c.lag {
			all[conv] = e.head
		}
	}
	return all
}

// empty fails unless the hub holds nothing any more.
func (h *house) empty() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.devices)+len(h.users)+len(h.convs)+len(h.gaps)+len(h.recent.items)+len(h.recent.windows)+len(h.jobs)+len(h.later)+h.workers+
		h.recent.bytes+h.n.lagging+h.n.held > 0 {
		return fmt.Errorf("something stays behind: %d devices, %d users, %d conversations, %d gaps, %d recent, %d windows, %d jobs, %d later, %d workers, %d bytes, %d lagging, %d held",
			len(h.devices), len(h.users), len(h.convs), len(h.gaps), len(h.recent.items), len(h.recent.windows), len(h.jobs), len(h.later), h.workers, h.recent.bytes, h.n.lagging, h.n.held)
	}
	return nil
}
