package gateway

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

func TestLogin_Welcome(t *testing.T) {
	h := build(t, limits())
	c := h.connect(false, false)
	c.say(`{"t":"hello","rid":"h","token":"ada/phone","device":"phone","install":3,"resume":"r1"}`)
	f := c.want("welcome")
	if f.RID != "h" || f.MaxFrame != 256<<10 || f.Heartbeat != 25_000 {
		t.Errorf("got %s", f.raw)
	}
	got := h.log.hellos[0]
	if got.User != "ada" || got.Device != "phone" || *got.Install != 3 || got.Resume != "r1" {
		t.Errorf("the log was asked %+v", got)
	}
	if h.log.firsts != 0 {
		t.Error("FirstFrame before a frame")
	}
	c.up("1")
	c.up("2")
	h.log.locked(func() {
		if h.log.firsts != 1 {
			t.Errorf("FirstFrame %d times", h.log.firsts)
		}
	})
	c.say(`{"t":"hello","rid":"h2","token":"ada/phone","device":"phone"}`)
	c.wantError("BAD_FRAME", "h2")
	c.up("3")
}

func TestLogin_InstallOfTheTokenIsTheDefault(t *testing.T) {
	nine := int64(9)
	h := build(t, limits(), func(c *Config) { c.Auth = fakeAuth{install: &nine} })
	h.enter("ada/phone")
	if got := h.log.hellos[0].Install; got == nil || *got != 9 {
		t.Errorf("install %v", got)
	}
}

// TestLogin_Refused: what ends a connection before its welcome, and what does not.
func TestLogin_Refused(t *testing.T) {
	h := build(t, limits())
	h.log.onHello = func(_ context.Context, hello posthorn.Hello) error {
		switch hello.User {
		case "old":
			return posthorn.Errorf(posthorn.CodeStaleInstall, "install 1 is behind 2")
		case "down":
			if len(h.log.hellos)%2 == 1 {
				return errors.New("SQLSTATE 57P03: the database system is starting up")
			}
		}
		return nil
	}
	for name, c := range map[string]struct {
		frame  string
		code   posthorn.Code
		rid    string
		status int
	}{
		"other frame":   {`{"t":"sub","rid":"1"}`, "UNAUTHENTICATED", "1", 4005},
		"ack":           {`{"t":"ack","conv":"c","seq":1}`, "UNAUTHENTICATED", "", 4005},
		"unknown t":     {`{"t":"helo","rid":"1"}`, "UNAUTHENTICATED", "1", 4005},
		"no JSON":       {`GET / HTTP/1.1`, "UNAUTHENTICATED", "", 4005},
		"bad token":     {`{"t":"hello","rid":"1","token":"bad","device":"d"}`, "UNAUTHENTICATED", "1", 4005},
		"other device":  {`{"t":"hello","rid":"1","token":"ada/phone","device":"desk"}`, "UNAUTHENTICATED", "1", 4005},
		"stale install": {`{"t":"hello","rid":"1","token":"old/d","device":"d","install":1}`, "STALE_INSTALL", "1", 4004},
	} {
		t.Run(name, func(t *testing.T) {
			cl := h.connect(false, false)
			cl.t = t
			cl.say("%s", c.frame)
			cl.wantError(c.code, c.rid)
			if f := cl.want("bye"); f.Code != c.code {
				t.Errorf("got %s", f.raw)
			}
			cl.wantClose(websocketStatus(c.status))
		})
	}
	t.Run("malformed hello, then a good one", func(t *testing.T) {
		cl := h.connect(false, false)
		cl.t = t
		cl.say(`{"t":"hello","rid":"1","token":"ada/d","device":7}`)
		cl.wantError("BAD_FRAME", "1")
		cl.login("ada/d")
	})
	t.Run("database away, then back", func(t *testing.T) {
		h.log.locked(func() { h.log.hellos = nil })
		cl := h.connect(false, false)
		cl.t = t
		cl.say(`{"t":"hello","rid":"1","token":"down/d","device":"d"}`)
		if f := cl.wantError("INTERNAL", "1"); f.Msg != "internal error" {
			t.Errorf("got %s", f.raw)
		}
		cl.login("down/d")
	})
}

// TestLogin_Deadline: silence, slow bytes, repeated hellos and a database that does not answer all end at the deadline.
func TestLogin_Deadline(t *testing.T) {
	l := limits(func(l *posthorn.Limits) { l.LoginDeadline = 150 * time.Millisecond })
	h := build(t, l)
	h.log.onHello = func(ctx context.Context, _ posthorn.Hello) error {
		<-ctx.Done()
		return ctx.Err()
	}
	t.Run("silence", func(t *testing.T) {
		p := h.raw()
		p.upgrade()
		p.wantStatus(1008)
	})
	t.Run("slow bytes", func(t *testing.T) {
		p := h.raw()
		p.upgrade()
		b := rawFrame(fin|text, []byte(`{"t":"hello","rid":"1","token":"ada/d","device":"d"}`))
		done := make(chan struct{})
		go func() {
			defer close(done)
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for _, x := range b {
				<-tick.C
				if p.write([]byte{x}) != nil {
					return
				}
			}
		}()
		p.wantStatus(1008)
		_ = p.c.Close()
		<-done
	})
	t.Run("repeated hellos", func(t *testing.T) {
		c := h.connect(false, false)
		c.t = t
		for c.write(`{"t":"hello","rid":"1"}`) == nil {
			if f, err := c.read(); err != nil {
				break
			} else if f.Code != "BAD_FRAME" {
				t.Fatal(f.raw)
			}
		}
	})
	t.Run("database does not answer", func(t *testing.T) {
		c := h.connect(false, false)
		c.t = t
		c.say(`{"t":"hello","rid":"1","token":"ada/d","device":"d"}`)
		c.wantError("UNAVAILABLE", "1")
		c.wantClose(1008)
	})
	eventually(t, "all sockets are gone", func() bool { return h.g.Stats().Sockets == 0 })
}

// TestLogin_HellosAreBounded: of many that come at once, MaxHellos are with the database, and all are welcomed.
func TestLogin_HellosAreBounded(t *testing.T) {
	h := build(t, limits(), func(c *Config) { c.MaxHellos = 3 })
	var now, most atomic.Int64
	gate := make(chan struct{})
	h.log.onHello = func(ctx context.Context, _ posthorn.Hello) error {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return nil
	}
	var cs []*client
	for range 12 {
		c := h.connect(false, false)
		c.say(`{"t":"hello","rid":"h","token":"u%d","device":"d"}`, len(cs))
		cs = append(cs, c)
	}
	eventually(t, "three are with the database", func() bool { return now.Load() == 3 })
	close(gate)
	for _, c := range cs {
		c.want("welcome")
	}
	if most.Load() != 3 {
		t.Errorf("%d hellos at a time", most.Load())
	}
}

// TestLogin_ReplacedDevice: the newer connection of a device wins, the older one is told why.
func TestLogin_ReplacedDevice(t *testing.T) {
	h := build(t, limits())
	old := h.enter("ada/phone")
	other := h.enter("ada/desk")
	old.subscribe()
	fresh := h.enter("ada/phone")
	if f := old.want("bye"); f.Code != "REPLACED" {
		t.Errorf("got %s", f.raw)
	}
	old.wantClose(4001)
	fresh.up("1")
	other.up("2")
}
