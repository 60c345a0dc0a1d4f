package client

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/posthorn/posthorn"
)

// Config says what a client needs. URL, Token, Device and StorePath must be set; the zero value of every other field is
// its default.
type Config struct {
	// URL is the base of the server, as http://127.0.0.1:8080 or wss://chat.example.com; ws and http, wss and https mean
	// the same. The socket's path is added.
	URL string

	// Token gives the token for a hello. It is asked before every connection, so that a session can be renewed; an error
	// counts as a failed attempt to connect.
	Token func(ctx context.Context) (string, error)

	// Device is this device's name among the user's devices, the same for the life of the store.
	Device string

	// StorePath is the file that holds the log, the cursors and the outbox. It is made where it is missing, together with
	// its folder. One process may have it open.
	StorePath string

	// Start says where conversations begin that are new to this device: Beginning() (default) or Tail(n).
	Start Start

	// AckEvery is how many stored events of a conversation are confirmed at once. Default 4; 1 confirms each.
	AckEvery int

	// AckAfter is how long a stored event waits for others before it is confirmed. Default 200 ms.
	AckAfter time.Duration

	// RequestTimeout is how long an answer is waited for; then a send goes out again with the same cmid, and other requests
	// are asked again. Default 10 s.
	RequestTimeout time.Duration

	// Backoff spaces attempts to connect, and to repeat what the server refused for the moment.
	Backoff Backoff

	// OutboxItems and OutboxBytes bound the outbox, failed items included. Defaults 10,000 and 64 MiB; at the bound
	// Send returns ErrOutboxFull.
	OutboxItems int
	OutboxBytes int

	// HTTPClient dials. Default: http.DefaultClient; one with a proxy or a certificate goes here.
	HTTPClient *http.Client

	// Logger gets what an operator may want to know: connections lost, items refused. Default: nothing is logged.
	Logger *slog.Logger

	// Tracer sees every frame and every store commit. Default: none.
	Tracer Tracer

	// Hooks are called as things happen. Default: none.
	Hooks Hooks

	unsynced bool // tests that are not about durability do without fsync
}

// Start is where a conversation begins that is new to this device; see Tail and Beginning.
type Start struct{ tail int }

// Tail begins with the newest n events (1–500); what lies below comes by History. The server keeps the place as the
// device's start mark.
func Tail(n int) Start { return Start{min(max(n, 1), posthorn.DefaultLimits().PageEvents)} }

// Beginning fetches everything that this user may see.
func Beginning() Start { return Start{} }

// Backoff is jittered exponential back-off. The zero value of each field is its default.
type Backoff struct {
	First time.Duration // the first wait; default 250 ms
	Max   time.Duration // no wait is longer, jitter aside; default 10 s
}

// Hooks are called on the client's own goroutine: they must be quick and must not call the client's blocking methods
// (Send, Close, Discard).
type Hooks struct {
	// Applied gets the events of a burst that became part of the contiguous log, after they are on disk and before they
	// are confirmed to the server.
	Applied func([]posthorn.Event)

	// Acked is told what the server says that it has stored for this device.
	Acked func(conv string, delivered int64)
}

func (h *Hooks) applied(evs []posthorn.Event) {
	if h.Applied != nil {
		h.Applied(evs)
	}
}

func (h *Hooks) acked(conv string, delivered int64) {
	if h.Acked != nil {
		h.Acked(conv, delivered)
	}
}

func (cfg *Config) fill() error {
	lim := posthorn.DefaultLimits()
	switch {
	case cfg.Token == nil:
		return errors.New("client: Config.Token is missing")
	case cfg.StorePath == "":
		return errors.New("client: Config.StorePath is missing")
	case cfg.AckEvery < 0 || cfg.AckAfter < 0 || cfg.RequestTimeout < 0 || cfg.OutboxItems < 0 || cfg.OutboxBytes < 0 ||
		cfg.Backoff.First < 0 || cfg.Backoff.Max < 0:
		return errors.New("client: a number in Config is negative")
	}
	if err := posthorn.CheckID("device", cfg.Device, lim.IDBytes); err != nil {
		return err
	}
	if _, err := endpoint(cfg.URL); err != nil {
		return err
	}
	orDefault(&cfg.AckEvery, lim.AckEvery)
	orDefault(&cfg.AckAfter, lim.AckAfter)
	orDefault(&cfg.RequestTimeout, lim.RequestTimeout)
	orDefault(&cfg.OutboxItems, 10_000)
	orDefault(&cfg.OutboxBytes, 64<<20)
	orDefault(&cfg.Backoff.First, 250*time.Millisecond)
	orDefault(&cfg.Backoff.Max, lim.ReconnectMax)
	orDefault(&cfg.Tracer, Tracer(noTracer{}))
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// waits makes the series of waits between attempts.
func (b Backoff) waits() *backoff.ExponentialBackOff {
	e := backoff.NewExponentialBackOff()
	e.InitialInterval, e.MaxInterval, e.Multiplier, e.RandomizationFactor = b.First, max(b.First, b.Max), 2, 0.5
	e.Reset()
	return e
}

// wait is the nth wait (from 0) of such a series.
func (b Backoff) wait(n int) time.Duration {
	e := b.waits()
	for range min(n, 32) {
		e.NextBackOff()
	}
	return e.NextBackOff()
}
