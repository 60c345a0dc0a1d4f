package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

func (h *house) stop(d time.Duration) chan error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	done := make(chan error, 1)
	go func() { defer cancel(); done <- h.g.Stop(ctx) }()
	return done
}

// draining waits until the gateway does not serve any more.
func (h *house) draining() {
	h.t.Helper()
	eventually(h.t, "draining", func() bool { h.g.mu.Lock(); defer h.g.mu.Unlock(); return h.g.state != serving })
}

// TestB69_Drain: Stop ends within its budget, whatever the sockets are doing.
func TestB69_Drain(t *testing.T) {
	t.Run("unstarted and twice", func(t *testing.T) {
		g := New(Config{})
		for range 2 {
			if err := g.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
		g.Start()
		if g.enter() {
			t.Error("it serves after Stop")
		}
	})
	t.Run("idle sockets, silent ones, ones that do not read", func(t *testing.T) {
		h := build(t, limits())
		h.g.Start() // twice
		c := h.enter("ada/d")
		p := h.raw()
		p.upgrade()
		slow := h.connect(false, true)
		slow.login("slow/d")
		slow.subscribe()
		for range 300 {
			h.log.say("c", strings.Repeat("x", 30_000))
		}
		began := time.Now()
		done := h.stop(patience)
		if f := c.want("bye"); f.Code != "SHUTTING_DOWN" || f.Reconnect < 0 || f.Reconnect > 15 {
			t.Errorf("got %s", f.raw)
		}
		c.wantClose(4003)
		p.wantStatus(4003)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("took %s", d)
		}
		for range 2 {
			if err := h.g.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("sends in flight get their reply, new requests are refused", func(t *testing.T) {
		h := build(t, limits())
		h.log.hold = func(*posthorn.Op) bool { return true }
		c := h.enter("ada/d")
		idle := h.enter("idle/d")
		c.say(`{"t":"send","rid":"1","conv":"c","cmid":"1","body":"x"}`)
		c.say(`{"t":"send","rid":"2","conv":"c","cmid":"2","body":"x"}`)
		eventually(t, "two are held", func() bool { return h.log.waiting() == 2 })
		done := h.stop(patience)
		idle.want("bye")
		idle.wantClose(4003)
		c.say(`{"t":"send","rid":"3","conv":"c","cmid":"3","body":"x"}`)
		if f := c.wantError("UNAVAILABLE", "3"); f.Retry == 0 {
			t.Error(f.raw)
		}
		c.up("ping is answered")
		h.log.release(2)
		for _, rid := range []string{"1", "2"} {
			if f := c.want("sent"); f.RID != rid {
				t.Error(f.raw)
			}
		}
		c.want("bye")
		c.wantClose(4003)
		if err := <-done; err != nil || h.log.ops != 2 {
			t.Error(err, h.log.ops)
		}
	})
	t.Run("an unknown outcome does not hold it up", func(t *testing.T) {
		h := build(t, limits())
		h.log.hold = func(*posthorn.Op) bool { return true }
		h.log.onOp = func(*posthorn.Op) error { return posthorn.ErrUnknown }
		c := h.enter("ada/d")
		c.say(`{"t":"send","rid":"1","conv":"c","cmid":"1","body":"x"}`)
		eventually(t, "it is held", func() bool { return h.log.waiting() == 1 })
		done := h.stop(patience)
		h.draining()
		h.log.release(1)
		c.want("bye")
		c.wantClose(4003)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("half of the budget is used", func(t *testing.T) {
		h := build(t, limits(func(l *posthorn.Limits) { l.Drain = 400 * time.Millisecond }))
		h.log.hold = func(*posthorn.Op) bool { return true }
		c := h.enter("ada/d")
		c.say(`{"t":"send","rid":"1","conv":"c","cmid":"1","body":"x"}`)
		eventually(t, "it is held", func() bool { return h.log.waiting() == 1 })
		done := h.stop(patience)
		c.want("bye")
		c.wantClose(4003)
		if err := <-done; err != nil {
			t.Error(err)
		}
		h.log.release(1) // Done after the end
	})
	t.Run("a read that does not heed its context", func(t *testing.T) {
		h := build(t, limits())
		gate, reading := make(chan struct{}), make(chan struct{})
		h.log.onPage = func(context.Context, posthorn.PageQuery) error { close(reading); <-gate; return nil }
		c := h.enter("ada/d")
		c.say(`{"t":"sync","rid":"1","conv":"c","after":0}`)
		<-reading
		began := time.Now()
		if err := <-h.stop(300 * time.Millisecond); !errors.Is(err, ErrCut) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("took %s", d)
		}
		close(gate)
		eventually(t, "the rest ends by itself", func() bool { return h.g.Stop(context.Background()) == nil })
	})
	t.Run("a second Stop ends at once", func(t *testing.T) {
		h := build(t, limits())
		h.log.hold = func(*posthorn.Op) bool { return true }
		c := h.enter("ada/d")
		c.say(`{"t":"send","rid":"1","conv":"c","cmid":"1","body":"x"}`)
		eventually(t, "it is held", func() bool { return h.log.waiting() == 1 })
		first := h.stop(patience)
		h.draining()
		began := time.Now()
		if err := h.g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("took %s", d)
		}
	})
}

// TestB33_ReconnectsAreSpread: what clients are told grows with their number, differs, and is capped.
func TestB33_ReconnectsAreSpread(t *testing.T) {
	h := build(t, limits())
	const n = 100
	var cs []*client
	for i := range n {
		cs = append(cs, h.enter(fmt.Sprintf("u%d/d", i)))
	}
	done := h.stop(patience)
	seen := map[int64]bool{}
	for _, c := range cs {
		f := c.want("bye")
		if f.Reconnect < 0 || f.Reconnect > n*5 {
			t.Errorf("got %s", f.raw)
		}
		seen[f.Reconnect] = true
		_ = c.ws.CloseNow()
	}
	if len(seen) < n/3 {
		t.Errorf("%d different times for %d clients", len(seen), n)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	for range 100 {
		if ms := h.g.reconnect(1_000_000); ms > h.g.limits.ReconnectMax.Milliseconds() {
			t.Errorf("%d ms", ms)
		}
	}
}

// TestDrain_Stress: Start, Stop, handshakes, sends and pushes at the same time leave nothing behind (see TestMain).
func TestDrain_Stress(t *testing.T) {
	for range 10 {
		h := build(t, limits())
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for {
					p, err := h.tryEnter(fmt.Sprintf("u%d/d", i%4))
					if err != nil {
						return
					}
					for k := 0; p.write(fmt.Sprintf(`{"t":"send","rid":"%d","conv":"c","cmid":"%d-%[1]d","body":"x"}`, k, i)) == nil && k < 50; k++ {
					}
					_ = p.ws.CloseNow()
				}
			})
		}
		eventually(t, "some work is done", func() bool { return h.g.Stats().FramesIn > 100 })
		a, b := h.stop(patience), h.stop(patience)
		for _, done := range []chan error{a, b} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
	}
}
