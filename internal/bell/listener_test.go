package bell_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/posthorn/posthorn/internal/bell"
	"github.com/posthorn/posthorn/internal/pgtest"
)

const listening = "select pid from pg_stat_activity where datname = current_database() and query like 'LISTEN%'"

// B36: a listening connection on a dead wire, or with a backend that does not run, is found out by the proof, and replaced.
func TestB36_DeadWire(t *testing.T) {
	url := pgtest.URL(t)
	t.Run("the wire freezes without FIN or RST", func(t *testing.T) {
		relay := pgtest.NewRelay(t, url)
		e := listen(t, relay.URL, url, "dead_wire")
		e.proven(t)
		looks := e.looked()
		relay.Freeze()
		began := time.Now()
		eventually(t, "it to be noticed", func() bool { return e.Up() != nil })
		if took := time.Since(began); took > 30*time.Second {
			t.Fatalf("noticed after %v", took)
		}
		e.ring(t, "dead_wire", "meanwhile:1") // is missed
		relay.Thaw()
		e.proven(t)
		if e.looked() <= looks || e.Reconnects() == 0 {
			t.Fatalf("%d looks after %d, %d reconnects", e.looked(), looks, e.Reconnects())
		}
		e.ring(t, "dead_wire", "after:1")
		eventually(t, "the bell", func() bool { return e.has("after:1") })
	})
	t.Run("the backend is stopped", func(t *testing.T) {
		e := listen(t, url, url, "stopped")
		e.proven(t)
		pid := pgtest.Query[int](t, url, listening+" and query like '%stopped%'")
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Skip("this user may not stop PostgreSQL's processes:", err)
		}
		defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
		eventually(t, "it to be noticed", func() bool { return e.Up() != nil })
		e.proven(t)
		if e.Reconnects() == 0 {
			t.Fatal("on the same connection")
		}
	})
}

// B40: behind a transaction pooler LISTEN succeeds and hears nothing.
func TestB40_DeafByConfiguration(t *testing.T) {
	url := pgtest.URL(t)
	t.Run("transaction pooler", func(t *testing.T) {
		e := listen(t, pgtest.Bouncer(t, url), url, "im_events")
		if e.Up() == nil {
			t.Fatal("up before it is proven")
		}
		eventually(t, "the likely cause to be named", func() bool { return strings.Contains(e.Up().Error(), "pooler") })
	})
	for _, channel := range []string{"Im:Events-Prod", `a"; drop table posthorn.users; --`, "Ünï", strings.Repeat("x", 63)} {
		t.Run(channel, func(t *testing.T) {
			e := listen(t, url, url, channel)
			e.proven(t)
			other := listen(t, url, url, strings.ToLower(channel)+"2"[:min(1, 63-len(channel))])
			other.proven(t)
			e.ring(t, channel, "c:1")
			eventually(t, "the bell", func() bool { return e.has("c:1") })
			if channel != strings.Repeat("x", 63) && other.has("c:1") {
				t.Fatal("heard on another channel")
			}
		})
	}
	for _, channel := range []string{"", strings.Repeat("x", 63) + "staging", strings.Repeat("x", 63) + "product", "a\x00b", "\xff"} {
		if _, err := bell.New(bell.Config{Channel: channel}); err == nil {
			t.Errorf("%q is taken", channel)
		}
	}
	if !pgtest.Query[bool](t, url, "select to_regclass('posthorn.users') is not null") {
		t.Fatal("a channel's name was run as SQL")
	}
}

// B38: junk is counted and ignored; the good ones after it are heard. Proofs of others wake nobody.
func TestB38_JunkOnTheChannel(t *testing.T) {
	url := pgtest.URL(t)
	e := listen(t, url, url, "junk")
	e.proven(t)
	bad := []string{"", "x", "c-ab:-1", "c-ab:99999999999999999999", strings.Repeat("\u00ff", 3999) + "!"}
	for _, payload := range bad {
		e.ring(t, "junk", payload)
	}
	e.ring(t, "junk", "nosuch:1")
	e.ring(t, "junk", "a:b:7")
	e.ring(t, "junk", "proof of somebody else")
	eventually(t, "the good ones", func() bool { return e.has("nosuch:1") && e.has("a:b:7") })
	eventually(t, "the bad ones to be counted", func() bool { return e.Junk() == int64(len(bad)) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.heard) != 2 {
		t.Fatalf("%v", e.heard)
	}
}

// A listener whose proofs cannot be sent, or whose connection is ended again and again, says why, and comes back.
func TestListenerComesBack(t *testing.T) {
	url := pgtest.URL(t)
	e := listen(t, url, url, "back")
	e.proven(t)
	for range 5 {
		before := e.Reconnects()
		pgtest.Exec(t, url, "select pg_terminate_backend(pid) from ("+listening+") x")
		eventually(t, "another connection", func() bool { return e.Reconnects() > before })
		e.proven(t)
	}
	e.pool.Close()
	eventually(t, "the trouble to be told", func() bool { return e.Up() != nil })
	if why := e.Up().Error(); !strings.Contains(why, "no notification can be sent") {
		t.Fatal(why)
	}
}

func TestNotifierRingsAfterwards(t *testing.T) {
	url := pgtest.URL(t)
	e := listen(t, url, url, "after")
	e.proven(t)
	n := bell.NewNotifier(connectTo(url), discard())
	for range 3 {
		n.Ring("after", "before the start:1")
	}
	n.Start(t.Context())
	n.Start(t.Context())
	defer n.Stop()
	eventually(t, "the bell that waited", func() bool { return e.has("before the start:1") })
	pgtest.Exec(t, url, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like '%pg_notify%' and state = 'idle'")
	eventually(t, "a bell after the connection was lost", func() bool {
		n.Ring("after", "later:1")
		return e.has("later:1")
	})
	n.Stop()
	unstarted := bell.NewNotifier(nil, discard())
	unstarted.Stop()
	unstarted.Stop()
}
