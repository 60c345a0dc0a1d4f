package gateway

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/posthorn/posthorn"
)

type state int

const (
	idle state = iota
	serving
	draining
	stopped
)

// Gateway serves the sockets of one process.
type Gateway struct {
	cfg     Config
	limits  posthorn.Limits
	origins map[string]bool
	log     *slog.Logger
	hellos  chan struct{} // held while a login is with the database
	trouble complaints
	n       counters

	ctx    context.Context // parent of all requests; ends when Stop cuts the connections
	cancel context.CancelFunc
	quit   chan struct{}  // closed when no socket is left: ends beat and complain
	ended  chan struct{}  // closed when every goroutine has ended
	conns  sync.WaitGroup // readers, writers, requests; Add only under mu while serving, or from one of them
	own    sync.WaitGroup // beat, complain

	suspending sync.Mutex // one Suspend after the other

	mu        sync.Mutex // guards what follows
	state     state
	suspended bool
	sockets   map[*socket]struct{}
	due       []*socket // have acked replies that wait for a push
}

// New makes a gateway that serves nothing until Start.
func New(cfg Config) *Gateway {
	if cfg.Limits == (posthorn.Limits{}) {
		cfg.Limits = posthorn.DefaultLimits()
	}
	if cfg.MaxHellos <= 0 {
		cfg.MaxHellos = 256
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{
		cfg: cfg, limits: cfg.Limits, log: cfg.Logger,
		origins: map[string]bool{}, sockets: map[*socket]struct{}{},
		hellos: make(chan struct{}, cfg.MaxHellos), trouble: complaints{waiting: make(chan complaint, 16)},
		quit: make(chan struct{}), ended: make(chan struct{}),
	}
	for _, o := range cfg.AllowedOrigins {
		if strings.Contains(o, "://") { // never "null" or "*"
			g.origins[o] = true
		}
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Start begins to serve. It is legal twice, and does nothing after Stop.
func (g *Gateway) Start() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state != idle {
		return
	}
	g.state = serving
	g.own.Go(g.beat)
	g.own.Go(g.complain)
}

// add lists a new socket; one that comes while the gateway drains is told so at once.
func (g *Gateway) add(s *socket) {
	g.mu.Lock()
	g.sockets[s] = struct{}{}
	s.q.sleep(g.suspended)
	late := g.state != serving
	g.mu.Unlock()
	g.n.accepted.Add(1)
	g.n.sockets.Add(1)
	if late {
		s.part(g.farewell(0))
	}
}

func (g *Gateway) remove(s *socket) {
	g.mu.Lock()
	delete(g.sockets, s)
	g.mu.Unlock()
	g.n.sockets.Add(-1)
}

// each calls f for the sockets of this moment, without the lock.
func (g *Gateway) each(f func(*socket)) {
	g.mu.Lock()
	all := make([]*socket, 0, len(g.sockets))
	for s := range g.sockets {
		all = append(all, s)
	}
	g.mu.Unlock()
	for _, s := range all {
		f(s)
	}
}
