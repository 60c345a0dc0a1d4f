package store_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// D5, D6: after each crash of PostgreSQL, the whole of it or one backend, 20 sends are all pushed by another gateway with
// the sweep off, although the crash gave back transaction ids that its tail had gone past.
func TestD5_EveryCrashIsPushed(t *testing.T) {
	rounds := 20
	if os.Getenv("POSTHORN_NIGHTLY") != "" {
		rounds = 1000
	}
	// Commits that nobody waits for stay in memory, so that a crash takes their ids back.
	cluster, err := pgtest.StartCluster(t.Context(), map[string]string{"wal_writer_delay": "10s", "shared_buffers": "16MB", "autovacuum": "off"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	url := cluster.URL()
	if err := store.Migrate(t.Context(), url, ""); err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{"ana", "bo"} {
		exec(t, url, "insert into posthorn.users (user_id) values ('"+u+"')")
	}
	noSweep := func(c *store.Config) { c.Limits.SweepInterval = 0 }
	a, _ := open(t, url, noSweep)
	b, lb := open(t, url, noSweep)
	conv := group(t, a, "ana", "bo")
	lb.awaitHead(t, conv, 1)
	first, reused := a.Epoch(), 0
	for round := range rounds {
		noise := burn(t, url)
		eventually(t, "the noise to have used up ids", func() bool { return noise.ids() > 200 })
		before := nextID(t, url)
		b.WakeTail()
		if round%2 == 0 {
			if err := cluster.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			noise.end()
			if err := cluster.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else {
			killBackend(t, url)
			noise.end()
		}
		eventually(t, "both gateways to be ready", func() bool { return steady(a) && steady(b) })
		if nextID(t, url) < before {
			reused++
		}
		for i := range 20 {
			cmid := fmt.Sprint(round, "-", i)
			eventually(t, "a send to pass", func() bool { return do(t, a, msg(conv, "ana", cmid, "x")).Err == nil })
		}
		lb.awaitHead(t, conv, int64(1+20*(round+1)))
	}
	if reused == 0 { // whether the WAL of the noise had been flushed is a matter of luck, and of load
		t.Error("no ids were given back: the test shows nothing")
	}
	if a.Epoch() != first {
		t.Error("a new epoch, though nothing that was told is lost")
	}
	t.Logf("transaction ids were used again in %d of %d rounds", reused, rounds)
}

func steady(s *store.Store) bool {
	for _, c := range s.Ready() {
		if !c.OK {
			return false
		}
	}
	return true
}

// noise uses up transaction ids that are never flushed.
type noise struct {
	mu   sync.Mutex
	n    int
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func (n *noise) ids() int { n.mu.Lock(); defer n.mu.Unlock(); return n.n }
func (n *noise) end()     { n.stop(); n.wg.Wait() }

func burn(t *testing.T, url string) *noise {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	n := &noise{stop: cancel}
	n.wg.Go(func() {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			return
		}
		defer c.Close(context.WithoutCancel(ctx))
		for ctx.Err() == nil {
			_, err := c.Exec(ctx, "begin; set local synchronous_commit = off; insert into posthorn.settings values (pg_current_xact_id()::text, ''); rollback;"+
				"begin; set local synchronous_commit = off; insert into posthorn.settings values (pg_current_xact_id()::text, ''); commit")
			if err != nil {
				return
			}
			n.mu.Lock()
			n.n += 2
			n.mu.Unlock()
		}
	})
	return n
}

func nextID(t *testing.T, url string) (id int64) {
	t.Helper()
	eventually(t, "the database to answer", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			return false
		}
		defer c.Close(ctx)
		return c.QueryRow(ctx, "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&id) == nil
	})
	return id
}

func exec(t *testing.T, url, statement string) {
	t.Helper()
	c := connect(t, url)
	if _, err := c.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// killBackend kills one idle backend, upon which the postmaster, which lives on, ends all the others.
func killBackend(t *testing.T, url string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(int(c.PgConn().PID()), syscall.SIGKILL); err != nil {
		t.Skip("this user may not kill PostgreSQL's processes:", err)
	}
	_ = c.Close(t.Context())
}
