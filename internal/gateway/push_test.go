package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
)

// TestB1_SlowReaderCostsItself: a client that stops reading costs itself pushes, and later its connection; never memory
// or its neighbours' pushes. Goal: B1. Method: 10,000 events of 2 KB to it and four healthy clients, in blocks that the
// healthy ones have read before the next; the bound of the queue is watched from inside.
func TestB1_SlowReaderCostsItself(t *testing.T) {
	h := build(t, limits(func(l *posthorn.Limits) { l.WriteDeadline = time.Minute })) // its connection is for the next test
	slow := h.connect(false, true)
	slow.login("slow/d")
	slow.subscribe()
	s := h.socket("slow")
	const blocks, block, healthy = 100, 100, 4
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var read atomic.Int64
	var wg sync.WaitGroup
	for i := range healthy {
		c := h.enter(fmt.Sprintf("u%d/d", i))
		c.subscribe()
		wg.Go(func() {
			for seq := range int64(blocks * block) {
				_, b, err := c.ws.Read(ctx) // parsing 2 KB 40,000 times would be most of the test
				if want := fmt.Sprintf(`"seq":%d,`, seq+1); err != nil || !bytes.Contains(b, []byte(want)) {
					t.Errorf("healthy client %d: %.100s %v, want %s", i, b, err, want)
					return
				}
				read.Add(1)
			}
		})
	}
	body := strings.Repeat("x", 2000)
	var worst time.Duration
	for b := range blocks {
		began := time.Now()
		for range block {
			h.log.say("c", body)
		}
		eventually(t, "healthy clients read the block", func() bool { return t.Failed() || read.Load() == int64(healthy*block*(b+1)) })
		worst = max(worst, time.Since(began))
		s.q.mu.Lock()
		pushes, bytes, hints := s.q.pushes, s.q.pushBytes, len(s.q.hints)
		s.q.mu.Unlock()
		if pushes > h.g.limits.OutFrames || bytes > h.g.limits.OutBytes || hints > 1 {
			t.Fatalf("queue of the slow one: %d pushes, %d bytes, %d hints", pushes, bytes, hints)
		}
		if t.Failed() {
			return
		}
	}
	wg.Wait()
	t.Logf("worst block of %d pushes to %d clients: %s; %d dropped", block, healthy, worst, h.g.Stats().PushesDropped)
	if worst > 2*time.Second {
		t.Errorf("a block took %s", worst)
	}
	// The last message of the conversation is among the dropped ones: the hint tells its seq.
	for last := int64(0); ; {
		f, err := slow.read()
		if err != nil {
			t.Fatal(err)
		}
		if f.T == "hint" && f.Head == blocks*block {
			if f.Why != "overflow" {
				t.Error(f.raw)
			}
			break
		}
		if f.T == "event" {
			if f.Ev.Seq <= last {
				t.Fatalf("%d after %d", f.Ev.Seq, last)
			}
			last = f.Ev.Seq
		}
	}
	slow.up("still there")
}

// TestB1_StuckWriterIsClosed: where nothing goes out within the write deadline the socket is closed, also in the midst of
// replies that nobody reads, and what it held is freed.
func TestB1_StuckWriterIsClosed(t *testing.T) {
	h := build(t, limits(func(l *posthorn.Limits) { l.WriteDeadline = 300 * time.Millisecond }))
	h.log.pageBody = strings.Repeat("x", 64<<10)
	healthy := h.enter("ok/d")
	healthy.subscribe()
	for name, stick := range map[string]func(c *client){
		"pushes": func(c *client) {
			c.subscribe()
			for h.g.Stats().Sockets == 2 {
				h.log.say("c", strings.Repeat("x", 16_000))
				if f := healthy.want("event"); f.Ev.Seq == 0 {
					t.Fatal(f.raw)
				}
			}
		},
		"replies": func(c *client) {
			s := h.socket("slow")
			for c.write(`{"t":"history","rid":"r","conv":"c","before":1}`) == nil && h.g.Stats().Sockets == 2 {
				s.q.mu.Lock()
				n := len(s.q.items)
				s.q.mu.Unlock()
				if n > pageReads {
					t.Fatalf("%d pages wait for a client that does not read", n)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := h.connect(false, true)
			c.login("slow/d")
			s := h.socket("slow")
			stick(c)
			eventually(t, "the slow socket is closed", func() bool { return h.g.Stats().Sockets == 1 })
			s.q.mu.Lock()
			defer s.q.mu.Unlock()
			if s.q.items != nil || s.q.hints != nil || !s.q.closed {
				t.Error("its queue is still there")
			}
		})
	}
	if n := h.g.Stats().SlowClosed; n != 2 {
		t.Errorf("%d closed for being slow", n)
	}
	healthy.up("1")
}

// TestPush_SubbedComesFirst: pushes begin after subbed, once per connection, whichever page is asked for; a sub that
// failed is repeated without a second subscription.
func TestPush_SubbedComesFirst(t *testing.T) {
	h := build(t, limits())
	reading, gate := make(chan struct{}), make(chan struct{})
	broken := true
	h.log.onList = func(context.Context) error {
		reading <- struct{}{}
		<-gate
		if broken {
			broken = false
			return errors.New("the database is away")
		}
		return nil
	}
	c := h.enter("ada/d")
	c.say(`{"t":"sub","rid":"0","after":"b"}`)
	<-reading
	gate <- struct{}{}
	c.wantError("INTERNAL", "0")
	c.say(`{"t":"sub","rid":"1","since":"s0","limit":3}`)
	<-reading
	h.log.say("c", "committed while the list is read")
	gate <- struct{}{}
	c.want("subbed")
	eventually(t, "the pushes begin", func() bool { h.hub.mu.Lock(); defer h.hub.mu.Unlock(); return len(h.hub.subscribed) == 1 })
	h.log.say("c", "later")
	if f := c.want("event"); f.Ev.Seq != 2 {
		t.Errorf("got %s", f.raw)
	}
	c.say(`{"t":"sub","rid":"2","after":"c"}`)
	<-reading
	close(gate)
	c.want("subbed")
	if h.hub.subs != 1 {
		t.Errorf("%d subscriptions", h.hub.subs)
	}
	if q := h.log.lists[1]; q.Since != "s0" || q.Limit != 3 || h.log.lists[2].After != "c" {
		t.Errorf("asked %+v", h.log.lists)
	}
}

// TestPush_SubWhileTheConnectionEnds: the hub is not asked for a socket that it has been told to forget (see build).
func TestPush_SubWhileTheConnectionEnds(t *testing.T) {
	h := build(t, limits())
	h.log.onList = func(ctx context.Context) error { <-ctx.Done(); return nil } // says success at the worst moment
	for i := range 20 {
		c := h.enter(fmt.Sprintf("u%d/d", i))
		c.say(`{"t":"sub","rid":"1"}`)
		c.say(`{"t":"sub","rid":"2"}`)
		_ = c.ws.CloseNow()
	}
	eventually(t, "all are gone", func() bool { return h.g.Stats().Sockets == 0 })
}

// TestPush_ConvAndHints: conv frames share the bound of pushes, hints merge per conversation and find room.
func TestPush_ConvAndHints(t *testing.T) {
	h := build(t, limits(func(l *posthorn.Limits) { l.OutFrames = 3 }))
	c := h.enter("ada/d")
	s := h.socket("ada")
	taken := func(n int) { // as if that many pushes were being written
		s.q.mu.Lock()
		defer s.q.mu.Unlock()
		s.q.pushes += n
	}
	taken(2)
	if !s.PushConv(posthorn.Entry{Conv: "n", Kind: posthorn.Group}) {
		t.Error("no room for the third frame")
	}
	eventually(t, "it is written", func() bool { s.q.mu.Lock(); defer s.q.mu.Unlock(); return s.q.pushes == 2 })
	taken(1)
	if s.PushConv(posthorn.Entry{Conv: "o"}) || s.PushEvent([]byte(`{}`), "c", 1) {
		t.Error("the bound of frames does not hold")
	}
	taken(-3)
	if f := c.want("conv"); !strings.Contains(f.raw, `"conv":"n"`) {
		t.Error(f.raw)
	}
	if !s.PushHint("c", 9, 1, "sweep") {
		t.Error("no room for a hint")
	}
	if f := c.want("hint"); f.Head != 9 || f.Why != "sweep" {
		t.Error(f.raw)
	}
	if s.q.push(item{frame: make([]byte, h.g.limits.OutBytes+1), kind: event}) {
		t.Error("the bound of bytes does not hold")
	}
	s.Close(posthorn.CodeNewEpoch)
	c.want("bye")
	c.wantClose(4006)
	eventually(t, "it is gone", func() bool { return h.g.Stats().Sockets == 0 })
	if s.PushHint("c", 10, 1, "gap") || s.PushEvent([]byte(`{}`), "c", 1) || s.PushConv(posthorn.Entry{}) {
		t.Error("an ended socket takes pushes")
	}
	s.Close(posthorn.CodeReplaced)
}

// TestAcked_Merged: acks without rid share one acked per conversation, with the next push or after AckedDelay; those with
// one get theirs; errors that end the matter are told.
func TestAcked_Merged(t *testing.T) {
	h := build(t, limits(func(l *posthorn.Limits) { l.AckedDelay = time.Hour }))
	h.log.heads["c"], h.log.heads["d"] = 9, 9
	c := h.enter("ada/d")
	c.subscribe()
	for _, f := range []string{`"c","seq":3`, `"c","seq":7`, `"d","seq":2`, `"c","seq":5`} {
		c.say(`{"t":"ack","conv":%s}`, f)
	}
	c.say(`{"t":"ack","rid":"own","conv":"d","seq":4}`)
	got := map[string]int64{}
	for range 3 { // the reply goes out, and takes the merged ones along
		f := c.want("acked")
		got[f.Conv+f.RID] = f.Delivered
	}
	if fmt.Sprint(got) != "map[c:7 d:2 down:4]" {
		t.Errorf("got %v", got)
	}
	c.say(`{"t":"ack","conv":"c","seq":8}`)
	eventually(t, "it was taken", func() bool { h.log.mu.Lock(); defer h.log.mu.Unlock(); return h.log.cursors["d/c"] == 8 })
	h.log.say("c", "x")
	first, second := mustRead(t, c), mustRead(t, c)
	if first.T+second.T != "eventacked" && first.T+second.T != "ackedevent" {
		t.Errorf("got %s, %s", first.raw, second.raw)
	}
	c.say(`{"t":"ack","conv":"c","seq":11}`)
	c.wantError("CURSOR_AHEAD", "")
	c.up("1")

	fast := build(t, limits())
	fast.log.heads["c"] = 9
	c = fast.enter("ada/d")
	c.say(`{"t":"ack","conv":"c","seq":3}`)
	if f := c.want("acked"); f.Delivered != 3 {
		t.Error(f.raw)
	}
	fast.log.onAck = func(posthorn.Ack) error {
		return &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: "full", Retry: time.Second}
	}
	c.say(`{"t":"ack","conv":"c","seq":4}`)
	c.say(`{"t":"ack","rid":"r","conv":"c","seq":4}`)
	c.wantError("UNAVAILABLE", "r")
}

// TestFault_Points: each point does its harm to its own frames, and none blocks whoever fills the queue.
func TestFault_Points(t *testing.T) {
	arm := func(t *testing.T, spec string) {
		if err := fault.Arm(spec); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = fault.Arm("") })
	}
	h := build(t, limits())
	c := h.enter("ada/d")
	c.subscribe()
	bob := h.enter("bob/d")
	bob.subscribe()
	t.Run("gw.reply.send:drop", func(t *testing.T) {
		arm(t, "gw.reply.send:drop:0:1")
		c.say(`{"t":"leave","rid":"l","conv":"c","cmid":"l"}`)
		if f := c.want("sent"); f.RID != "l" {
			t.Error(f.raw)
		}
		c.say(`{"t":"send","rid":"1","conv":"c","cmid":"m","body":"x"}`)
		c.say(`{"t":"send","rid":"2","conv":"c","cmid":"m","body":"x"}`)
		if f := c.want("sent"); f.RID != "2" || !f.Dup || f.Seq != 2 {
			t.Error(f.raw)
		}
		bob.want("event")
		bob.want("event")
	})
	t.Run("gw.push:drop", func(t *testing.T) {
		arm(t, "gw.push:drop")
		h.log.say("c", "lost")
		h.socket("bob").PushHint("c", 3, 0, "sweep")
		bob.want("hint")
		c.up("1")
	})
	t.Run("gw.push:delay", func(t *testing.T) {
		arm(t, "gw.push:delay=500")
		began := time.Now()
		h.socket("bob").PushHint("d", 3, 0, "sweep")
		bob.want("hint")
		h.log.say("c", "late") // to both
		if d := time.Since(began); d > 400*time.Millisecond {
			t.Errorf("the hub waited %s", d)
		}
		bob.want("event")
		if d := time.Since(began); d < 500*time.Millisecond {
			t.Errorf("not delayed: %s", d)
		}
		c.want("event")
	})
	s := h.socket("bob")
	waiting := func(n int) func() bool {
		return func() bool { s.q.mu.Lock(); defer s.q.mu.Unlock(); return len(s.q.items) == n }
	}
	t.Run("gw.push:delay holds up what comes after it only", func(t *testing.T) {
		arm(t, "gw.push:delay=400")
		h.log.say("c", "1")
		eventually(t, "the writer is with it", waiting(0))
		bob.say(`{"t":"ping","rid":"p"}`)
		eventually(t, "the reply waits", waiting(1))
		h.log.say("c", "2")
		bob.want("event")
		began := time.Now()
		bob.want("pong")
		if d := time.Since(began); d > 300*time.Millisecond {
			t.Errorf("the reply before the event waited %s", d)
		}
		bob.want("event")
		c.want("event")
		c.want("event")
	})
	t.Run("Close drops pushes that wait, not replies", func(t *testing.T) {
		arm(t, "gw.push:delay=600:0:2")
		h.log.say("c", "1")
		eventually(t, "the writer is with it", waiting(0))
		bob.say(`{"t":"ping","rid":"p"}`)
		h.log.say("c", "2")
		eventually(t, "both wait", waiting(2))
		s.Close(posthorn.CodeReplaced)
		bob.want("event")
		bob.want("pong")
		bob.want("bye")
		bob.wantClose(4001)
		c.want("event")
		c.want("event")
	})
	t.Run("gw.ack:drop", func(t *testing.T) {
		arm(t, "gw.ack:drop")
		h.hub.mu.Lock()
		h.hub.heard = nil
		h.hub.mu.Unlock()
		c.say(`{"t":"ack","conv":"c","seq":1}`)
		c.say(`{"t":"ack","rid":"a","conv":"c","seq":1}`)
		c.up("1")
		if h.log.acks != 0 || h.hub.heard != nil {
			t.Error("the ack was taken")
		}
	})
	t.Run("sync.page", func(t *testing.T) {
		arm(t, "sync.page:error:0:1")
		c.say(`{"t":"sync","rid":"1","conv":"c","after":0}`)
		c.wantError("INTERNAL", "1")
		arm(t, "sync.page:drop:0:1")
		c.say(`{"t":"sync","rid":"2","conv":"c","after":0}`)
		c.say(`{"t":"history","rid":"h","conv":"c","before":1}`)
		if f := c.want("page"); f.RID != "h" {
			t.Error(f.raw)
		}
		eventually(t, "the dropped page gave its place back", func() bool { return len(h.socket("ada").pages) == 0 })
		c.say(`{"t":"sync","rid":"3","conv":"c","after":0}`)
		if f := c.want("page"); f.RID != "3" {
			t.Error(f.raw)
		}
	})
	_ = fault.Arm("")
}

func mustRead(t *testing.T, c *client) frame {
	t.Helper()
	f, err := c.read()
	if err != nil {
		t.Fatal(err)
	}
	return f
}
