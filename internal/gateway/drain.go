package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/posthorn/posthorn"
)

const (
	// perReconnect is the share of one socket in the spread of reconnects: the clients of a gateway that goes come back at
	// up to 200 a second, far below what hellos can be answered at, until ReconnectMax caps the wait.
	perReconnect = 5 * time.Millisecond
	// cutGrace is how long a cut connection's goroutines are waited for.
	cutGrace = 250 * time.Millisecond
)

// ErrCut is returned by Stop where goroutines of the gateway were still busy when it had to return.
var ErrCut = errors.New("gateway: connections were cut")

// Stop drains: no new connection, no new request; every socket says bye SHUTTING_DOWN once its writing requests are
// answered, or when half of the budget is used, which is the shorter of Limits.Drain and the context's. It returns when
// all goroutines have ended. A second Stop and the end of the context cut what is left and return at once. It is legal
// before Start and after Stop.
func (g *Gateway) Stop(ctx context.Context) error {
	g.mu.Lock()
	before := g.state
	if before == idle {
		g.state = stopped
	} else if before == serving {
		g.state = draining
	}
	n := len(g.sockets)
	g.mu.Unlock()
	switch before {
	case idle:
		g.cancel()
		return nil
	case stopped:
		return nil
	case draining:
		return g.cut()
	}
	go g.wait()
	g.each(func(s *socket) { s.part(g.farewell(n)) })
	budget := g.limits.Drain
	if until, ok := ctx.Deadline(); ok {
		budget = min(budget, time.Until(until))
	}
	late := time.NewTimer(budget / 2)
	defer late.Stop()
	for {
		select {
		case <-g.ended:
			return nil
		case <-late.C:
			g.each(func(s *socket) { s.end(g.farewell(n)) })
		case <-ctx.Done():
			return errors.Join(ctx.Err(), g.cut())
		}
	}
}

// wait ends the gateway once the last socket has.
func (g *Gateway) wait() {
	g.conns.Wait()
	close(g.quit)
	g.own.Wait()
	g.cancel()
	g.mu.Lock()
	g.state = stopped
	g.mu.Unlock()
	close(g.ended)
}

// cut closes all connections now; their ends cancel their requests.
func (g *Gateway) cut() error {
	g.each(func(s *socket) {
		s.end(ending{})
		s.raw.abort()
	})
	t := time.NewTimer(cutGrace)
	defer t.Stop()
	select {
	case <-g.ended:
		return nil
	case <-t.C:
		return ErrCut
	}
}

// reconnect draws the time after which a client should come back, from a spread that grows with the number of sockets.
func (g *Gateway) reconnect(sockets int) int64 {
	spread := min(time.Duration(sockets)*perReconnect, g.limits.ReconnectMax)
	return rand.Int64N(spread.Milliseconds() + 1)
}

// farewell is bye SHUTTING_DOWN. As a parting it waits until the writing requests are answered; what is queued goes first.
func (g *Gateway) farewell(sockets int) ending {
	e := bye(posthorn.CodeShuttingDown).after(keepAll)
	e.reconnect = g.reconnect(sockets)
	return e
}
