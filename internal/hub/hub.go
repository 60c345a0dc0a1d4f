package hub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/posthorn/posthorn"
)

// Config of a Hub. Loader and Encode are required.
type Config struct {
	Loader posthorn.Loader
	// Limits in force. The hub obeys SweepInterval (0: no sweep), SweepGrace, HoldGap and HubBuffer.
	Limits posthorn.Limits
	// Encode makes the event frame; prev is the previous seq that the receiver may see. The frame is shared by all sockets
	// for which prev is the same. It is called under the hub's lock and must not keep ev.
	Encode func(ev *posthorn.Event, prev int64) []byte
	// BufferBytes bounds the bytes of events that wait in one place (a conversation's gap, a socket before its activate,
	// a member before their view), beside Limits.HubBuffer, which bounds their number. Default: 8 MiB.
	BufferBytes int
	// Loads bounds the loads under way at once, of subs and of joins each. Default: 4.
	Loads int
	// Logger gets loads that fail. Default: discarded.
	Logger *slog.Logger
}

// Hub is the fan-out of one process. It implements posthorn.Fanout.
type Hub struct {
	cfg  Config
	log  *slog.Logger
	born time.Time

	slots chan struct{} // held while LoadDevice is under way
	kick  chan struct{} // of capacity 1: the clock's next time has changed
	wg    sync.WaitGroup

	// mu guards everything below and all that hangs from it: conversations, users, members, connections. See doc.go.
	mu      sync.Mutex
	devices map[int64]*conn  // the newest connection of each device
	users   map[string]*user // those with a connection that has subscribed
	convs   map[string]*conv // those with a local member
	gaps    map[*conv]struct{}
	recent  recent
	jobs    []*job // loads that wait for a worker
	later   []*job // loads that wait to be tried again
	workers int
	frames  []encoded     // of the event being fanned out
	now     time.Duration // since born, as of when mu was taken
	armed   time.Duration // when the clock looks next; 0: not before it is kicked
	wake    bool          // the tail is to be woken once mu is free
	n       counters
	ctx     context.Context // nil before Start
	cancel  context.CancelFunc
	stopped bool
	epoch   int64 // 0: not told yet
}

var _ posthorn.Fanout = (*Hub)(nil)

// New makes a Hub, which can be used before it is started: but gaps and joins wait until then.
func New(cfg Config) *Hub {
	if cfg.BufferBytes <= 0 {
		cfg.BufferBytes = 8 << 20
	}
	if cfg.Loads <= 0 {
		cfg.Loads = 4
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Hub{
		cfg: cfg, log: cfg.Logger,
		born:    time.Now().Add(-time.Second), // so that no time is 0, which means none
		slots:   make(chan struct{}, cfg.Loads),
		kick:    make(chan struct{}, 1),
		devices: map[int64]*conn{}, users: map[string]*user{}, convs: map[string]*conv{}, gaps: map[*conv]struct{}{},
	}
}

// Start begins the clock and the sweep. A second call does nothing, nor does one after Stop.
func (h *Hub) Start(ctx context.Context) {
	h.lock()
	defer h.unlock()
	if h.ctx != nil || h.stopped {
		return
	}
	h.ctx, h.cancel = context.WithCancel(ctx)
	h.wg.Go(func() { h.runClock(h.ctx) })
	if h.cfg.Limits.SweepInterval > 0 {
		h.wg.Go(func() { h.runSweep(h.ctx) })
	}
	h.startWorkers()
}

// Stop ends what Start began and waits for it, at most until ctx ends. It is legal twice, and unstarted.
func (h *Hub) Stop(ctx context.Context) error {
	h.halt()
	done := make(chan struct{})
	go func() {
		h.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// halt answers every op that waits and lets all connections go. From here on nothing is pushed.
func (h *Hub) halt() {
	h.lock()
	defer h.unlock()
	if h.stopped {
		return
	}
	h.stopped = true
	if h.cancel != nil {
		h.cancel()
	}
	for _, c := range h.devices {
		h.detach(c)
	}
	h.recent.clear(h)
	h.jobs, h.later = nil, nil
}

func (h *Hub) lock() {
	h.mu.Lock()
	h.now = time.Since(h.born)
}

func (h *Hub) unlock() {
	wake := h.wake
	h.wake = false
	h.mu.Unlock()
	if wake {
		h.cfg.Loader.WakeTail()
	}
}
