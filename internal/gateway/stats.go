package gateway

import "sync/atomic"

// Stats are counts since the start, the first two excepted, which are levels.
type Stats struct {
	Sockets        int64 // open connections
	Sessions       int64 // of these, logged in
	Accepted       uint64
	Refused        uint64 // handshakes answered without an upgrade
	FramesIn       uint64
	FramesOut      uint64
	BytesOut       uint64
	PushesDropped  uint64 // the out queue was full
	SlowClosed     uint64 // a write made no progress within the write deadline
	SilentClosed   uint64 // nothing was heard for too many heartbeats
	InternalErrors uint64
}

type counters struct {
	sockets, sessions                                       atomic.Int64
	accepted, refused, framesIn, framesOut, bytesOut        atomic.Uint64
	pushesDropped, slowClosed, silentClosed, internalErrors atomic.Uint64
}

// Stats reads the counts.
func (g *Gateway) Stats() Stats {
	return Stats{
		Sockets: g.n.sockets.Load(), Sessions: g.n.sessions.Load(),
		Accepted: g.n.accepted.Load(), Refused: g.n.refused.Load(),
		FramesIn: g.n.framesIn.Load(), FramesOut: g.n.framesOut.Load(), BytesOut: g.n.bytesOut.Load(),
		PushesDropped: g.n.pushesDropped.Load(), SlowClosed: g.n.slowClosed.Load(),
		SilentClosed: g.n.silentClosed.Load(), InternalErrors: g.n.internalErrors.Load(),
	}
}
