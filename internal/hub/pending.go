package hub

import "github.com/posthorn/posthorn"

// pending is what waits for a connection that is not active. It is bounded like every buffer here; what finds no room is
// told by a hint when the connection becomes active.
type pending struct {
	parcels []parcel
	bytes   int
	lost    map[string]loss // by conversation
}

// loss is what a hint will tell: the newest event that was dropped, and why.
type loss struct {
	seq int64
	why string
}

// parcel is an event frame, or a conv frame, or an answer.
type parcel struct {
	conv  string
	seq   int64
	frame []byte
	entry *posthorn.Entry
	op    *posthorn.Op
	out   posthorn.Outcome
}

func (p *pending) room(h *Hub, bytes int) bool {
	return len(p.parcels) < h.cfg.Limits.HubBuffer && p.bytes+bytes <= h.cfg.BufferBytes
}

// event puts an event frame aside, or notes that there was no room.
func (p *pending) event(h *Hub, conv string, seq int64, frame []byte) {
	if !p.room(h, len(frame)) {
		h.n.overflows++
		p.lose(conv, seq, "overflow")
		return
	}
	p.bytes += len(frame)
	p.parcels = append(p.parcels, parcel{conv: conv, seq: seq, frame: frame})
}

// lose notes a conversation for a hint.
func (p *pending) lose(conv string, seq int64, why string) {
	if p.lost == nil {
		p.lost = map[string]loss{}
	}
	p.lost[conv] = loss{max(p.lost[conv].seq, seq), why}
}

// done puts an answer aside. It is not bounded here: the gateway bounds the requests in flight.
func (p *pending) done(op *posthorn.Op, out posthorn.Outcome) {
	p.parcels = append(p.parcels, parcel{conv: out.Conv, seq: out.Seq, op: op, out: out})
}

// answer gives the answers of a connection that has gone.
func (p *pending) answer() {
	for _, x := range p.parcels {
		if x.op != nil {
			x.op.Done(x.out)
		}
	}
}

// above forgets the events that lie within the views: the client learns of them by subbed and syncs.
func (p *pending) above(views map[string]*posthorn.View) {
	kept := p.parcels[:0]
	for _, x := range p.parcels {
		if v := views[x.conv]; v != nil && x.frame != nil && x.seq <= v.Head {
			p.bytes -= len(x.frame)
			continue
		}
		kept = append(kept, x)
	}
	clear(p.parcels[len(kept):])
	p.parcels = kept
	for conv, x := range p.lost {
		if v := views[conv]; v != nil && x.seq <= v.Head {
			delete(p.lost, conv)
		}
	}
}

// flush makes a connection active and gives it what waited.
func (h *Hub) flush(c *conn) {
	p := c.pend
	c.pend, c.phase = nil, active
	if p == nil {
		return
	}
	for _, x := range p.parcels {
		switch {
		case x.op != nil:
			x.op.Done(x.out)
		case x.entry != nil:
			h.tell(c, x.entry)
		default:
			h.push(c, x.conv, x.seq, x.frame, max(x.seq, c.lag[x.conv].head))
		}
	}
	for conv, x := range p.lost {
		h.hint(c, conv, max(x.seq, c.lag[conv].head), x.why)
	}
}
