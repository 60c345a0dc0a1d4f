package hub

import (
	"context"
	"time"
)

// sweepChunk is how many connections are looked at while the lock is held.
const sweepChunk = 64

// runSweep asks, every interval, each device that lags for longer than the grace to sync (D5). One sweep ends before the
// next begins; a tick that comes meanwhile is left out.
func (h *Hub) runSweep(ctx context.Context) {
	ticker := time.NewTicker(h.cfg.Limits.SweepInterval)
	defer ticker.Stop()
	var conns []*conn
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		conns = h.activeConns(conns[:0])
		for rest := conns; len(rest) > 0 && ctx.Err() == nil; {
			n := min(sweepChunk, len(rest))
			h.sweep(rest[:n])
			rest = rest[n:]
		}
		clear(conns)
	}
}

// activeConns lists who is swept.
func (h *Hub) activeConns(into []*conn) []*conn {
	h.lock()
	defer h.unlock()
	for _, c := range h.devices {
		if c.phase == active && len(c.lag) > 0 {
			into = append(into, c)
		}
	}
	return into
}

// sweep gives each entry that is old enough one hint. The client answers a hint with a sync, and with an ack even if the
// page was empty, since the ack may have been what was lost.
func (h *Hub) sweep(conns []*conn) {
	h.lock()
	defer h.unlock()
	for _, c := range conns {
		if c.phase != active {
			continue
		}
		for conv, e := range c.lag {
			if h.now-e.since >= h.cfg.Limits.SweepGrace {
				h.hint(c, conv, e.head, "sweep")
			}
		}
	}
}
