package gateway

import (
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// liveness tells whether silence of a socket counts against it.
type liveness struct {
	watched atomic.Bool // logged in
	paused  atomic.Bool // the server does not read: what is not read cannot be heard
}

func (l *liveness) watch() { l.watched.Store(true) }
func (l *liveness) pause() { l.paused.Store(true) }

func (l *liveness) resume(c *rawConn) {
	c.heard.Store(time.Now().UnixNano())
	l.paused.Store(false)
}

// beat looks after all sockets with two tickers, so that an idle one costs no timer: heartbeats, and acked frames that
// found no push to go with.
func (g *Gateway) beat() {
	beats, stop := tick(g.limits.Heartbeat / 4)
	defer stop()
	due, stop := tick(g.limits.AckedDelay)
	defer stop()
	for {
		select {
		case <-g.quit:
			return
		case <-due:
			g.flushDue()
		case now := <-beats:
			g.each(func(s *socket) { s.beat(now) })
		}
	}
}

// tick is a ticker, or nothing where the interval is off.
func tick(d time.Duration) (<-chan time.Time, func()) {
	if d <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// beat pings a socket from which nothing came for a heartbeat, and ends one that did not answer for MissedBeats more.
// Any bytes count as life: a long message on a slow line has no room for a pong in between. Sockets that are not logged
// in have their login deadline.
func (s *socket) beat(now time.Time) {
	if !s.live.watched.Load() || s.live.paused.Load() {
		return
	}
	l := &s.g.limits
	switch silent := now.Sub(time.Unix(0, s.raw.heard.Load())); {
	case silent >= l.Heartbeat*time.Duration(1+l.MissedBeats):
		if s.q.end(closing(websocket.StatusGoingAway, "no heartbeat")) {
			s.raw.hurry(closeGrace)
			s.g.n.silentClosed.Add(1)
		}
	case silent >= l.Heartbeat:
		s.q.control(true, nil)
	}
}
