package main

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// A rolling restart under load: one gateway is told to stop, and the one that took its place is killed. All clients come
// back, spread over time, with few attempts; whoever was told sent has a row, and what was not answered is answered as a
// duplicate or for the first time, never stored twice.
func TestB33_RollingRestart(t *testing.T) {
	n := rounds(40, 500)
	url := pgtest.URL(t)
	home := serve(t, url) // makes tokens; takes no client
	one, two := spawn(t, "--database-url", url), func() *process {
		// Some of its replies are lost, so that there is something to resend when it is killed.
		t.Setenv("POSTHORN_FAULT", "gw.reply.send:drop:200:5")
		defer t.Setenv("POSTHORN_FAULT", "")
		return spawn(t, "--database-url", url)
	}()
	way := &road{}
	way.lead(one.url)
	ready := readiness{t: t, url: one.url}
	crowd := newCrowd(t, home, n, func(c *client.Config) { c.HTTPClient = way.client(t) })
	witness := home.dialTo(t, one.url, client.DialOptions{Tracer: tap{frame: func(_ client.Direction, f wire.Frame, _ []byte) {
		if _, ok := f.(*wire.Bye); ok {
			ready.look() // its socket is still open, so the server still answers
		}
	}}})
	crowd.more(t, 3*n)

	t.Log("SIGTERM")
	way.lead(two.url) // as the balancer does when readiness goes
	if code := one.terminate(t, posthorn.DefaultLimits().Drain+2*time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := ready.status(); got != http.StatusServiceUnavailable {
		t.Errorf("at the bye /readyz says %d", got)
	}
	for range witness.Frames() {
	}
	if e := posthorn.AsError(witness.Err()); e.Code != posthorn.CodeShuttingDown {
		t.Errorf("the connection ended with %v", e)
	}
	crowd.online(t, 2)
	crowd.spread(t, n)
	crowd.more(t, 3*n)

	t.Log("SIGKILL")
	three := spawn(t, "--database-url", url)
	way.lead(three.url)
	killed := time.Now()
	if err := two.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	crowd.online(t, 3)
	crowd.more(t, 3*n)
	crowd.hush(t, pgtest.SuperURL(t, url))

	var first, last time.Duration
	dups := 0
	for i, k := range crowd.talkers {
		k.mu.Lock()
		dups += k.dups
		back := k.hellos[len(k.hellos)-1].Sub(killed)
		if first == 0 || back < first {
			first = back
		}
		last = max(last, back)
		if len(k.hellos) > 5 {
			t.Errorf("u%d said hello %d times", i, len(k.hellos))
		}
		k.mu.Unlock()
	}
	// 250 ms, half of it more or less: here the server cannot tell anybody when to come.
	if first < 100*time.Millisecond || last-first < 50*time.Millisecond {
		t.Errorf("after the kill they came back within %s to %s", first, last)
	}
	if dups == 0 {
		t.Error("nothing was answered as a duplicate, though replies were lost")
	}
}

// online waits until everybody has been welcomed that often and is online.
func (c *crowd) online(t *testing.T, sessions int) {
	t.Helper()
	for _, k := range c.talkers {
		poll(t, "everybody to be back", func() bool {
			k.mu.Lock()
			defer k.mu.Unlock()
			return len(k.hellos) >= sessions && k.Client.State().Phase == client.Online
		})
	}
}

// spread judges the goodbyes: each says why, and when to come back, which is another time for each and is kept to.
func (c *crowd) spread(t *testing.T, n int) {
	t.Helper()
	bound := min(int64(n+1)*5, posthorn.DefaultLimits().ReconnectMax.Milliseconds())
	told := map[int64]bool{}
	var first, last time.Time
	for i, k := range c.talkers {
		k.mu.Lock()
		if len(k.byes) != 1 || k.byes[0].Code != posthorn.CodeShuttingDown || k.byes[0].ReconnectMS < 0 || k.byes[0].ReconnectMS > bound {
			t.Errorf("u%d was told %+v, want one goodbye with up to %d ms", i, k.byes, bound)
		} else {
			told[k.byes[0].ReconnectMS] = true
		}
		if back := k.hellos[1]; first.IsZero() || back.Before(first) {
			first = back
		} else if back.After(last) {
			last = back
		}
		if len(k.hellos) > 3 {
			t.Errorf("u%d needed %d hellos to come back", i, len(k.hellos)-1)
		}
		k.mu.Unlock()
	}
	if len(told) < n/4 {
		t.Errorf("%d clients were told %d different times", n, len(told))
	}
	if width := last.Sub(first); width < time.Duration(bound/4)*time.Millisecond {
		t.Errorf("all came back within %s, want up to %d ms", width, bound)
	}
}

// readiness looks once whether a server calls itself ready.
type readiness struct {
	t   *testing.T
	url string
	mu  sync.Mutex
	got int // guarded by mu
}

func (r *readiness) look() {
	resp, err := http.Get(r.url + "/readyz")
	if err != nil {
		r.t.Errorf("readyz: %v", err)
		return
	}
	_ = resp.Body.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = resp.StatusCode
}

func (r *readiness) status() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}
