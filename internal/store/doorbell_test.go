package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

const listeners = "select pid from pg_stat_activity where datname = current_database() and query like 'LISTEN%'"

// byBell leaves reading to the doorbell.
func byBell(c *store.Config) { c.Limits = slowPoll(); c.Limits.SweepInterval = 0 }

// B35: what is sent while the listener reconnects is missed by nobody, since it listens first and reads then. The sweep and
// the poll are off: only the listener can bring it.
func TestB35_TheGapWhileTheListenerReconnects(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo")
	s, l := open(t, url, byBell)
	awaitReady(t, s)
	conv := group(t, s, "ana", "bo")
	n := 0
	send := func() {
		n++
		pgtest.Exec(t, url, "select posthorn.send($1, 'ana', $2, 'x')", conv, fmt.Sprint(n))
	}
	for round := range 10 {
		before := s.Stats().Reconnects
		pgtest.Exec(t, url, "select pg_terminate_backend(pid) from ("+listeners+") x")
		send() // A: before it is back
		var wg sync.WaitGroup
		wg.Go(func() { // B: all along, also between its LISTEN and its reading
			for s.Stats().Reconnects == before {
				send()
			}
		})
		wg.Wait()
		send() // C: after
		l.awaitHead(t, conv, int64(n+1))
		if s.Stats().Reconnects == before {
			t.Fatalf("round %d: the reconnect does not show", round)
		}
	}
}

// A gateway behind pgbouncer in transaction mode works with --doorbell poll; with notify it says within 5 s that it is not
// ready, and why.
func TestB40_BehindATransactionPooler(t *testing.T) {
	url := pgtest.URL(t)
	pooled := pgtest.Bouncer(t, url)
	people(t, url, "ana", "bo")
	s, l := open(t, pooled, func(c *store.Config) { c.Poll = true })
	conv := group(t, s, "ana", "bo")
	for i := range 20 {
		if o := do(t, s, msg(conv, "ana", fmt.Sprint(i), "x")); o.Err != nil {
			t.Fatal(o.Err)
		}
		if _, code := hello(t, s, nil, ""); code != "" {
			t.Fatal(code)
		}
	}
	pgtest.Exec(t, url, "select posthorn.send($1, 'ana', 'sql', 'x')", conv)
	l.awaitHead(t, conv, 22)
	if err := store.Migrate(t.Context(), pooled, ""); err != nil {
		t.Fatal("a schema that is up to date:", err)
	}
	empty := pgtest.EmptyURL(t)
	if err := store.Migrate(t.Context(), pgtest.Bouncer(t, empty), ""); err == nil || !strings.Contains(err.Error(), "pooler") {
		t.Fatal("an empty database:", err)
	}

	began := time.Now()
	deaf, _ := open(t, pooled)
	for _, c := range deaf.Ready() {
		if c.Name == "doorbell" && (c.OK || !strings.Contains(c.Why, "pooler")) {
			t.Fatalf("after %v: %+v", time.Since(began), c)
		}
	}
}

// What /readyz tells names no host, no user and no path.
func TestReadinessTellsNothingOfTheDatabase(t *testing.T) {
	relay := pgtest.NewRelay(t, pgtest.URL(t))
	s, _ := open(t, relay.URL)
	awaitReady(t, s)
	relay.Freeze()
	relay.Cut()
	eventually(t, "the doorbell to be down", func() bool {
		for _, c := range s.Ready() {
			for _, part := range []string{"127.0.0.1", "user=", "posthorn@", "/tmp"} {
				if strings.Contains(c.Why, part) {
					t.Fatalf("%s: %s", c.Name, c.Why)
				}
			}
			if c.Name == "doorbell" && strings.Contains(c.Why, "cannot be made") {
				return true
			}
		}
		return false
	})
}

// Where PostgreSQL's notification queue fills, sends go without a bell until it has room again.
func TestSendsDoNotFillTheNotificationQueue(t *testing.T) {
	url := pgtest.URL(t)
	s, _, conv := written(t, url, 1)
	rung := connect(t, url)
	if _, err := rung.Exec(t.Context(), "listen im_events"); err != nil {
		t.Fatal(err)
	}
	heard := func() bool {
		do(t, s, msg(conv, "ana", time.Now().String(), "x"))
		pgtest.Exec(t, url, "select pg_notify('im_events', 'end:1')")
		for seen := false; ; {
			n, err := rung.WaitForNotification(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n.Payload == "end:1" {
				return seen
			}
			seen = seen || strings.HasPrefix(n.Payload, conv)
		}
	}
	if store.QueueUsed(s, 0.5); !heard() {
		t.Fatal("it does not ring")
	}
	if store.QueueUsed(s, 0.8); heard() {
		t.Fatal("it rings though the queue fills")
	}
	if store.QueueUsed(s, 0.5); heard() {
		t.Fatal("it rings again too early")
	}
	if store.QueueUsed(s, 0.2); !heard() {
		t.Fatal("it does not ring again")
	}
	if s.Stats().QueueUsage != 0.2 {
		t.Fatalf("%+v", s.Stats())
	}
}
