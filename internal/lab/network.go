package lab

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// relay is a network between two programs: it takes TCP connections and carries them to wherever dial leads. It can
// swallow what the far side says, stand still without a sign, as a cable that was pulled does, and cut every connection.
type relay struct {
	addr  string
	l     net.Listener
	dial  func(context.Context) (net.Conn, error)
	ctx   context.Context // ends with close
	end   context.CancelFunc
	muted atomic.Bool
	wg    sync.WaitGroup

	mu   sync.Mutex // guards what follows
	open map[*passage]struct{}
	gate chan struct{} // closed while bytes pass; a passage waits for it before it hands anything on
}

// passage is one connection and the one behind it.
type passage struct {
	near, far net.Conn
	said      atomic.Pointer[string] // the beginning of what the near side said, for finding one passage among many
	still     chan struct{}          // not nil: this passage alone stands still, until it is closed; guarded by relay.mu
}

// relay opens one; the trial's end closes it.
func (t *trial) relay(dial func(context.Context) (net.Conn, error)) *relay {
	l, err := (&net.ListenConfig{}).Listen(t.ctx, "tcp", "127.0.0.1:0")
	t.must(err)
	r := &relay{addr: l.Addr().String(), l: l, dial: dial, open: map[*passage]struct{}{}, gate: make(chan struct{})}
	close(r.gate)
	r.ctx, r.end = context.WithCancel(context.WithoutCancel(t.ctx))
	t.cleanup(r.close)
	r.wg.Go(r.accept)
	return r
}

func (r *relay) accept() {
	for {
		near, err := r.l.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.pass(near) })
	}
}

// pass makes the way behind a connection. While the relay stands still nobody hears of the connection.
func (r *relay) pass(near net.Conn) {
	p := &passage{near: near}
	if !r.add(p) {
		_ = near.Close()
		return
	}
	defer r.drop(p)
	if !r.mayPass(p) {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
	far, err := r.dial(ctx)
	cancel()
	if err != nil || !r.joined(p, far) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { r.carry(p, far, near, false) })
	both.Go(func() { r.carry(p, near, far, true) })
	both.Wait()
}

// carry moves bytes one way until either end closes. An end, too, is heard of only while bytes pass. Muted, the far side's
// bytes are read and thrown away: it has said it, and nobody has heard.
func (r *relay) carry(p *passage, to, from net.Conn, fromFar bool) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !fromFar && n > 0 {
			p.hear(buf[:n])
		}
		if !r.mayPass(p) {
			return
		}
		if n > 0 && !(fromFar && r.muted.Load()) {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = io.ErrClosedPipe
			}
		}
		if err != nil {
			return
		}
	}
}

// hear keeps the first few hundred bytes of what the near side said.
func (p *passage) hear(b []byte) {
	var before string
	if s := p.said.Load(); s != nil {
		before = *s
	}
	if len(before) < 4096 {
		now := before + string(b)
		p.said.Store(&now)
	}
}

// mayPass waits while the relay, or this passage, stands still; false: the relay is being closed.
func (r *relay) mayPass(p *passage) bool {
	for {
		r.mu.Lock()
		gate, still := r.gate, p.still
		r.mu.Unlock()
		select {
		case <-gate:
		case <-r.ctx.Done():
			return false
		}
		if still == nil {
			return true
		}
		select {
		case <-still:
			return true
		case <-r.ctx.Done():
			return false
		}
	}
}

func (r *relay) add(p *passage) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return false
	}
	r.open[p] = struct{}{}
	return true
}

// joined keeps the far end, unless the passage was cut while it was being made.
func (r *relay) joined(p *passage, far net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.open[p]; !open {
		_ = far.Close()
		return false
	}
	p.far = far
	return true
}

func (r *relay) drop(p *passage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut(p)
}

// shut closes both ends; the caller holds mu.
func (r *relay) shut(p *passage) {
	delete(r.open, p)
	_ = p.near.Close()
	if p.far != nil {
		_ = p.far.Close()
	}
}

// mute swallows everything that the far side says from now on.
func (r *relay) mute() { r.muted.Store(true) }

// cut ends all connections; those that come afterwards are whole.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.open {
		r.shut(p)
	}
	r.muted.Store(false)
}

// freeze stops every byte, in both directions and on new connections too. Nobody is told: no FIN, no RST.
func (r *relay) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.gate:
		r.gate = make(chan struct{})
	default: // it stands still already
	}
}

// heal lets everything pass again, what was held included.
func (r *relay) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.gate:
	default:
		close(r.gate)
	}
}

// freezeOne stops the open connections whose near side has said something, for good; it gives how many.
func (r *relay) freezeOne(fits func(said string) bool) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.open {
		if s := p.said.Load(); s != nil && p.still == nil && fits(*s) {
			p.still = make(chan struct{})
			n++
		}
	}
	return n
}

func (r *relay) close() {
	r.end()
	_ = r.l.Close()
	r.cut()
	r.wg.Wait()
}

// link is the network between clients and gateways.
type link struct {
	*relay
	url string
}

// link opens one before a gateway.
func (t *trial) link(g *gateway) *link { return t.balancer(g) }

// balancer opens one before several gateways: a new connection goes to the next of those that still run.
func (t *trial) balancer(all ...*gateway) *link {
	var turn atomic.Int64
	r := t.relay(func(ctx context.Context) (net.Conn, error) {
		for range all {
			g := all[int(turn.Add(1))%len(all)]
			if g.alive() {
				return (&net.Dialer{}).DialContext(ctx, "tcp", g.url[len("http://"):])
			}
		}
		return nil, errors.New("no gateway runs")
	})
	return &link{relay: r, url: "http://" + r.addr}
}
