package bell

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config of a Listener.
type Config struct {
	// Connect opens the connection that listens. Required.
	Connect func(context.Context) (*pgx.Conn, error)
	// Channel to LISTEN on, at most 63 bytes; it is quoted. Required.
	Channel string
	// Ring is called for each notification with the sender's backend pid, and with pid 0 after each (re)connect, when
	// anything may have been missed. It must not block. Required.
	Ring func(pid uint32, payload string)
	// Probe is how long the connection may be silent before a query proves it alive. Default 10 s.
	Probe time.Duration
	// Deadline of the probe and of a connect. Default 5 s.
	Deadline time.Duration
	// Logger; default discards.
	Logger *slog.Logger
}

// Listener keeps one connection listening and tells when the bell rings.
type Listener struct {
	cfg        Config
	cancel     context.CancelFunc // set by Start
	done       chan struct{}      // closed by the goroutine
	start      sync.Once
	up         atomic.Bool
	reconnects atomic.Int64
}

// New makes a Listener that is not started.
func New(cfg Config) (*Listener, error) {
	if n := len(cfg.Channel); n == 0 || n > 63 {
		return nil, fmt.Errorf("channel name has %d bytes, want 1 to 63: PostgreSQL would cut it and listen to another", n)
	}
	if cfg.Probe == 0 {
		cfg.Probe = 10 * time.Second
	}
	if cfg.Deadline == 0 {
		cfg.Deadline = 5 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Listener{cfg: cfg, done: make(chan struct{})}, nil
}

// Start begins listening; a second call does nothing.
func (l *Listener) Start(ctx context.Context) {
	l.start.Do(func() {
		ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go l.run(ctx)
	})
}

// Stop ends the goroutine and waits for it. Legal twice, and before Start.
func (l *Listener) Stop() {
	l.start.Do(func() { close(l.done) })
	if l.cancel != nil {
		l.cancel()
	}
	<-l.done
}

// Up tells whether the connection listens now.
func (l *Listener) Up() bool { return l.up.Load() }

// Reconnects counts how often listening began after the first time.
func (l *Listener) Reconnects() int64 { return max(l.reconnects.Load()-1, 0) }

func (l *Listener) run(ctx context.Context) {
	defer close(l.done)
	wait := 50 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := l.listen(ctx)
		l.up.Store(false)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > 10*time.Second {
			wait = 50 * time.Millisecond
		}
		l.cfg.Logger.Warn("the doorbell connection ended; polling until it is back", "error", err, "retry_in", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, 2*time.Second)
	}
}

// listen connects, listens, asks for one full look, then waits: in this order nothing falls between.
func (l *Listener) listen(ctx context.Context) error {
	cctx, cancel := context.WithTimeout(ctx, l.cfg.Deadline)
	defer cancel()
	conn, err := l.cfg.Connect(cctx)
	if err != nil {
		return err
	}
	defer func() {
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(cctx)
	}()
	if _, err := conn.Exec(cctx, "LISTEN "+pgx.Identifier{l.cfg.Channel}.Sanitize()); err != nil {
		return err
	}
	l.up.Store(true)
	l.reconnects.Add(1)
	l.cfg.Ring(0, "")
	for {
		n, err := l.wait(ctx, conn)
		if err != nil {
			return err
		}
		if n {
			continue
		}
		pctx, cancel := context.WithTimeout(ctx, l.cfg.Deadline)
		err = conn.Ping(pctx)
		cancel()
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
	}
}

// wait returns true after a notification, false when the connection was silent for the probe interval.
func (l *Listener) wait(ctx context.Context, conn *pgx.Conn) (bool, error) {
	wctx, cancel := context.WithTimeout(ctx, l.cfg.Probe)
	defer cancel()
	n, err := conn.WaitForNotification(wctx)
	if err == nil {
		l.cfg.Ring(n.PID, n.Payload)
		return true, nil
	}
	if wctx.Err() != nil && ctx.Err() == nil && !conn.IsClosed() {
		return false, nil
	}
	return false, err
}
