package bell

import (
	"context"
	"crypto/rand"
	"errors"
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
	// Notify sends a notification over another connection, as the proof that the listening one hears: a notification that
	// is sent on the listening connection itself comes back even behind a transaction pooler. Required.
	Notify func(ctx context.Context, channel, payload string) error
	// Channel to LISTEN on, at most 63 bytes; it is quoted. Required.
	Channel string
	// Ring is called for each bell with the sender's backend pid, and with pid 0 after each (re)connect, when anything may
	// have been missed. It must not block. Required.
	Ring func(pid uint32, payload string)
	// Soft is a second channel, for what may be lost; "" for none. Told gets its payloads and must not block.
	Soft string
	Told func(payload string)
	// Probe is the time between two proofs. Default 10 s.
	Probe time.Duration
	// Deadline of a proof and of a connect. Default 5 s.
	Deadline time.Duration
	// Logger; default discards.
	Logger *slog.Logger
}

// firstDeadline is that of the first proof on a connection, so that whoever starts a server soon knows.
const firstDeadline = 3 * time.Second

var (
	errUnproven = errors.New("no notification from another connection has arrived yet")
	errDeaf     = errors.New("a notification sent from another connection does not arrive: the listening connection is dead, or a transaction pooler " +
		"such as pgbouncer stands before the database; use --doorbell poll or a URL of the server itself")
)

// Listener keeps one connection listening and tells when the bell rings.
type Listener struct {
	cfg        Config
	cancel     context.CancelFunc // set by Start
	done       chan struct{}      // closed by the goroutine
	start      sync.Once
	trouble    atomic.Pointer[error] // nil: proven
	reconnects atomic.Int64
	junk       atomic.Int64
}

// New makes a Listener that is not started.
func New(cfg Config) (*Listener, error) {
	if err := CheckChannel(cfg.Channel); err != nil {
		return nil, err
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
	l := &Listener{cfg: cfg, done: make(chan struct{})}
	l.down(errUnproven)
	return l, nil
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

// Up is nil while notifications are proven to arrive, else why they may not.
func (l *Listener) Up() error {
	if t := l.trouble.Load(); t != nil {
		return *t
	}
	return nil
}

func (l *Listener) down(why error) { l.trouble.Store(&why) }

// Reconnects counts how often listening began after the first time.
func (l *Listener) Reconnects() int64 { return max(l.reconnects.Load()-1, 0) }

// Junk counts notifications that were no bell.
func (l *Listener) Junk() int64 { return l.junk.Load() }

func (l *Listener) run(ctx context.Context) {
	defer close(l.done)
	const first, last = 50 * time.Millisecond, 2 * time.Second
	wait := first
	var logged time.Time
	for ctx.Err() == nil {
		err := l.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if l.Up() == nil {
			wait = first // it had been heard
		}
		l.down(err)
		if time.Since(logged) > time.Second {
			logged = time.Now()
			l.cfg.Logger.Warn("the doorbell is not heard; polling until it is", "error", err, "retry_in", wait)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, last)
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
	if l.cfg.Soft != "" {
		if _, err := conn.Exec(cctx, "LISTEN "+pgx.Identifier{l.cfg.Soft}.Sanitize()); err != nil {
			return err
		}
	}
	l.reconnects.Add(1)
	l.cfg.Ring(0, "")
	return l.hear(ctx, conn)
}

// hear takes notifications until the connection ends or a proof does not arrive.
func (l *Listener) hear(ctx context.Context, conn *pgx.Conn) error {
	p := prover{l: l, deadline: min(l.cfg.Deadline, firstDeadline)}
	defer p.wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.send(ctx)
	for {
		wctx, done := context.WithDeadline(ctx, p.due)
		n, err := conn.WaitForNotification(wctx)
		late := wctx.Err() != nil && ctx.Err() == nil && !conn.IsClosed()
		done()
		switch {
		case err == nil:
			if n.Channel == l.cfg.Channel {
				l.take(n.PID, n.Payload, &p)
			} else {
				l.cfg.Told(n.Payload)
			}
		case !late:
			return err
		case p.nonce == "":
			p.send(ctx)
		default:
			return p.failed()
		}
	}
}

// take sorts one notification.
func (l *Listener) take(pid uint32, payload string, p *prover) {
	switch kindOf(payload) {
	case rings:
		l.cfg.Ring(pid, payload)
	case proof: // those of other listeners mean nothing here
		if p.nonce != "" && payload == proofPrefix+p.nonce {
			p.arrived()
			l.trouble.Store(nil)
		}
	default:
		l.junk.Add(1)
	}
}

// prover sends proofs and knows when the next one is due, or when the one on its way must have arrived.
type prover struct {
	l        *Listener
	deadline time.Duration
	nonce    string // on its way; "": none
	due      time.Time
	wg       sync.WaitGroup
	err      atomic.Pointer[error] // why it could not be sent
}

// send does not wait: the reader must go on reading.
func (p *prover) send(ctx context.Context) {
	p.nonce = rand.Text()
	p.due = time.Now().Add(p.deadline)
	payload, by := proofPrefix+p.nonce, p.due
	p.wg.Go(func() {
		ctx, cancel := context.WithDeadline(ctx, by)
		defer cancel()
		if err := p.l.cfg.Notify(ctx, p.l.cfg.Channel, payload); err != nil {
			p.err.Store(&err)
		}
	})
}

func (p *prover) arrived() {
	p.nonce, p.deadline = "", p.l.cfg.Deadline
	p.due = time.Now().Add(p.l.cfg.Probe)
}

func (p *prover) failed() error {
	if err := p.err.Load(); err != nil {
		return fmt.Errorf("no notification can be sent: %w", *err)
	}
	return errDeaf
}
