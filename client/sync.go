package client

import (
	"encoding/json"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// want asks for a sync of a conversation from its own cursor. While one is under way it says for itself at its end
// whether another is needed; force asks for another in any case, because what was told came after it was read.
func (s *session) want(c *conv, force bool) {
	switch {
	case c.void || c.probe != nil: // a sync follows when the common past is found
	case c.running:
		c.again = c.again || force
	default:
		c.wanted = true
		if !c.listed && c.later == nil {
			c.listed = true
			s.syncQ = append(s.syncQ, c)
		}
	}
}

// wantLater is want after a while, longer the more often nothing came of it.
func (s *session) wantLater(c *conv, d time.Duration) {
	c.tries++
	if c.later != nil {
		return
	}
	c.later = s.agenda.add(d, func() {
		c.later = nil
		s.want(c, false)
	})
}

// hinted takes a hint: the server believes this device behind. Its head is no place to go to; after the sync the cursor
// is confirmed again, because the ack may be what was lost.
func (s *session) hinted(h *wire.Hint) {
	c := s.conv(h.Conv)
	c.head = max(c.head, h.Head)
	c.ackAgain = true
	s.want(c, true)
}

func (s *session) pumpSyncs() {
	for s.syncing < flightSyncs && len(s.syncQ) > 0 && s.err == nil {
		c := s.syncQ[0]
		s.syncQ = s.syncQ[1:]
		c.listed = false
		if c.wanted && !c.void && c.probe == nil {
			s.sync(c)
		}
	}
}

func (s *session) sync(c *conv) {
	c.wanted, c.again, c.running = false, false, true
	s.syncing++
	q := &wire.Sync{Conv: c.name, Limit: posthorn.DefaultLimits().PageEvents}
	if c.known {
		q.After = c.rec.Seq
	} else {
		q.Tail = s.c.cfg.Start.tail // 0: from the beginning
	}
	end := func() {
		s.syncing--
		c.running = false
	}
	s.ask(q, func(f wire.Frame, raw []byte) effect {
		switch f := f.(type) {
		case *wire.Page:
			return effect{
				events: len(f.Page.Events) > 0,
				store:  func(l *ledger) error { return l.page(q.After, q.Tail > 0, &f.Page, rawEvents(&f.Page, raw)) },
				then: func() {
					end()
					s.synced(c, q, &f.Page)
				},
			}
		case *wire.Error:
			return effect{then: func() {
				end()
				s.syncRefused(c, f)
			}}
		}
		return effect{then: func() { s.unexpected(f) }}
	})
}

// synced follows a page that is on disk.
func (s *session) synced(c *conv, q *wire.Sync, p *posthorn.Page) {
	moved := q.Tail > 0 || c.rec.Seq > q.After
	if moved {
		c.tries = 0
	}
	switch {
	case !c.known || (p.More || c.gap) && !moved:
		s.wantLater(c, s.c.cfg.Backoff.wait(c.tries)) // the server could not give what it says that there is
	case p.More || c.gap || c.again:
		s.want(c, false)
	case c.ackAgain:
		s.ackAsking(c)
	}
}

func (s *session) syncRefused(c *conv, e *wire.Error) {
	switch e.Code.Class() {
	case posthorn.SessionTerminal:
		s.fail(refusal(e))
	case posthorn.Resync:
		s.heal(c)
	case posthorn.ItemTerminal:
		// Not ours, or no more: the next entry or hint asks again.
		c.ackAgain = false
		s.c.cfg.Logger.Info("sync refused", "conv", c.name, "code", e.Code)
	default:
		s.wantLater(c, s.retryAfter(e, c.tries))
	}
}

// rawEvents gives each event of a page as a record, in the bytes in which it came.
func rawEvents(p *posthorn.Page, raw []byte) [][]byte {
	var page struct {
		Events []json.RawMessage `json:"events"`
	}
	out := make([][]byte, len(p.Events))
	if json.Unmarshal(raw, &page) != nil || len(page.Events) != len(p.Events) {
		for i := range out {
			out[i] = eventRecord(0, p.Events[i])
		}
		return out
	}
	for i, ev := range page.Events {
		b := make([]byte, 0, len(ev)+32)
		b = append(b, `{"t":"event","prev":0,"ev":`...)
		b = append(b, ev...)
		out[i] = append(b, '}')
	}
	return out
}
