package main

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// SIGTERM ends with code 0 within the drain limit, whatever the database does; a second signal ends at once.
func TestB69_ShutdownWaitsForNobody(t *testing.T) {
	drain := posthorn.DefaultLimits().Drain + 2*time.Second // process exit and a busy machine
	stopped := func(t *testing.T, p *process) {
		t.Helper()
		if code := p.terminate(t, drain); code != 0 {
			t.Fatalf("exit code %d", code)
		}
	}
	t.Run("idle", func(t *testing.T) { stopped(t, spawn(t, "--database-url", pgtest.URL(t))) })
	t.Run("idle, private database", func(t *testing.T) {
		dir := t.TempDir()
		if err := openUp(dir); err != nil {
			t.Fatal(err)
		}
		p := spawn(t, "--data", dir)
		stopped(t, p)
		if _, err := os.Stat(dir + "/postgres/data/postmaster.pid"); !os.IsNotExist(err) {
			t.Fatalf("PostgreSQL was not stopped cleanly: %v", err)
		}
	})
	t.Run("database down, then reconnecting", func(t *testing.T) {
		c, err := pgtest.StartCluster(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		p, q := spawn(t, "--database-url", c.URL()), spawn(t, "--database-url", c.URL())
		if err := c.Immediate(t.Context()); err != nil {
			t.Fatal(err)
		}
		stopped(t, p) // at once, while nothing has noticed yet
		poll(t, "the server to notice", func() bool { return len(q.stderr.String()) > 0 && reconnecting(q) })
		stopped(t, q)
	})
	t.Run("twice", func(t *testing.T) {
		c, err := pgtest.StartCluster(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		p := spawn(t, "--database-url", c.URL())
		n := serve(t, c.URL())
		ana := n.connect(t, "ana", "phone")
		conv := ana.group("open")
		// A stranger's lock keeps a send in flight, so that the drain has something to wait for.
		release := stranger(t, c.URL(), conv)
		defer release()
		other := dialProcess(t, p, n.token(t, "ana", "tablet"), "tablet")
		body := "x"
		if err := other.Write(&wire.Send{RID: "r", Conv: conv, Cmid: "m", Body: &body}); err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		poll(t, "the drain to begin", func() bool { return draining(p) })
		began := time.Now()
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		p.await(t, drain)
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("the second signal took %s", took)
		}
	})
}

// A send that waits for a stranger's lock when SIGTERM comes is never told sent, and nothing is half done.
func TestB69_CommitsInFlight(t *testing.T) {
	n, ana, _, conv := pair(t)
	release := stranger(t, n.url, conv)
	body := "x"
	if err := ana.Write(&wire.Send{RID: "r", Conv: conv, Cmid: "m", Body: &body}); err != nil {
		t.Fatal(err)
	}
	poll(t, "the send to wait in its lane", func() bool { return n.store.Stats().Queued > 0 })
	done := make(chan error, 1)
	go func() { done <- n.stop(3 * time.Second) }()
	for in := range ana.Frames() { // UNAVAILABLE, or silence: both leave it to the resend
		if s, ok := in.Frame.(*wire.Sent); ok {
			t.Fatalf("answered %+v while the row was locked", s)
		}
	}
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// What had reached PostgreSQL may still have been carried out when the lock went: the outcome was unknown, and the
	// resend leaves one row either way.
	if s := serve(t, n.url).connect(t, "ana", "tablet").send(conv, "m", "x"); s.Seq != 2 {
		t.Fatalf("%+v", s)
	}
}

// stranger holds a conversation's row as a long transaction of the application would; release is legal twice.
func stranger(t *testing.T, url, conv string) (release func()) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	release = func() { _ = c.Close(context.WithoutCancel(t.Context())) }
	t.Cleanup(release)
	for _, q := range []string{"begin", "select 1 from posthorn.conversations where conv_id = '" + conv + "' for update"} {
		if _, err := c.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	return release
}
