package bell_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthorn/posthorn/internal/bell"
	"github.com/posthorn/posthorn/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// ear is a listener with what it heard.
type ear struct {
	*bell.Listener
	pool *pgxpool.Pool

	mu    sync.Mutex // guards what follows
	heard map[string]int
	looks int // with pid 0: everything is to be read
}

// listen starts one on a URL; its proofs go over another.
func listen(t *testing.T, url, direct, channel string, edit ...func(*bell.Config)) *ear {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	e := &ear{pool: pool, heard: map[string]int{}}
	cfg := bell.Config{
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			c, err := pgx.ParseConfig(url)
			if err != nil {
				return nil, err
			}
			c.DialFunc = bell.Dial
			c.DefaultQueryExecMode = pgx.QueryExecModeExec
			return pgx.ConnectConfig(ctx, c)
		},
		Notify: func(ctx context.Context, channel, payload string) error {
			_, err := pool.Exec(ctx, "select pg_notify($1, $2)", channel, payload)
			return err
		},
		Channel: channel, Probe: 100 * time.Millisecond, Deadline: 300 * time.Millisecond,
		Ring: func(pid uint32, payload string) {
			e.mu.Lock()
			defer e.mu.Unlock()
			if pid == 0 {
				e.looks++
			} else {
				e.heard[payload]++
			}
		},
	}
	for _, f := range edit {
		f(&cfg)
	}
	if e.Listener, err = bell.New(cfg); err != nil {
		t.Fatal(err)
	}
	e.Start(t.Context())
	t.Cleanup(e.Stop)
	return e
}

func (e *ear) ring(t *testing.T, channel, payload string) {
	t.Helper()
	if _, err := e.pool.Exec(t.Context(), "select pg_notify($1, $2)", channel, payload); err != nil {
		t.Fatal(err)
	}
}

func (e *ear) has(payload string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heard[payload] > 0
}

func (e *ear) looked() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.looks
}

func (e *ear) proven(t *testing.T) {
	t.Helper()
	eventually(t, "the listener to be proven", func() bool { return e.Up() == nil })
}

func connectTo(url string) func(context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, url) }
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}
