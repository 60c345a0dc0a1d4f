package hub

// Stats is what the metrics show. The first six are levels, the others counts since the start.
type Stats struct {
	Sockets       int // that have said hello
	Users         int // with a subscribed socket
	Conversations int // with a local member
	Lagging       int // entries of the lag set
	Held          int // events that wait for one before them
	Recent        int // events whose readers may not be known yet

	Hints     uint64
	Overflows uint64 // events and conv frames that found no room
	Expired   uint64 // gaps that were not waited for any longer
	Reloads   uint64 // loads of views that failed and are tried again
}

// counters are guarded by Hub.mu.
type counters struct {
	lagging, held                      int
	hints, overflows, expired, reloads uint64
}

// Stats reads them.
func (h *Hub) Stats() Stats {
	h.lock()
	defer h.unlock()
	return Stats{
		Sockets: len(h.devices), Users: len(h.users), Conversations: len(h.convs), Lagging: h.n.lagging, Held: h.n.held,
		Recent: len(h.recent.items), Hints: h.n.hints, Overflows: h.n.overflows, Expired: h.n.expired, Reloads: h.n.reloads,
	}
}
