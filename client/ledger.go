package client

import (
	"go.etcd.io/bbolt"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// place says what becomes of an event that follows prev, where the log is held without a hole up to have.
type place int

const (
	ignored place = iota // held already: applying it twice changes nothing
	applied              // the next one: the cursor moves to it
	kept                 // past a gap: stored, not counted, and the gap is synced
)

// placeOf is the whole rule by which a cursor moves. It asks for prev <= have and not for seq == have+1, because seqs
// that this user may not see are no holes (B07, O1).
func placeOf(have, prev, seq int64) place {
	switch {
	case seq <= have:
		return ignored
	case prev <= have:
		return applied
	default:
		return kept
	}
}

// ledger applies one burst inside its transaction. Everything that moves a cursor goes through event and page, so the
// cursor on disk never runs ahead of the log on disk (D3).
type ledger struct {
	t         storeTx
	id        identity
	beginning bool // conversations new to this device begin at 0, without a page that says where
	convs     map[string]*ledgerConv
	order     []*ledgerConv
	applied   []posthorn.Event // what became part of the contiguous logs, in order for each conversation
	waiting   []keyed          // items that wait for a message to be there again
	found     []keyed          // those of them for which it came
}

type ledgerConv struct {
	name  string
	known bool
	void  bool // the cursor counts in another epoch or install: nothing is applied until it is settled
	rec   cursor
	from  int64 // the cursor before the burst
	top   int64 // the highest seq in the log
	log   *bbolt.Bucket
	dirty bool
}

func newLedger(t storeTx, id identity, beginning bool) *ledger {
	return &ledger{t: t, id: id, beginning: beginning, convs: map[string]*ledgerConv{}}
}

func (l *ledger) conv(name string) (*ledgerConv, error) {
	if c := l.convs[name]; c != nil {
		return c, nil
	}
	rec, known, err := l.t.cursor(name)
	if err != nil {
		return nil, err
	}
	b, err := l.t.log(name, true)
	if err != nil {
		return nil, err
	}
	c := &ledgerConv{name: name, known: known, rec: rec, from: rec.Seq, log: b}
	c.void = known && rec.void(l.id)
	if !known && l.beginning {
		c.begin(cursor{Epoch: l.id.Epoch, Install: l.id.Install})
	}
	k, _ := b.Cursor().Last()
	c.top = keySeq(k)
	l.convs[name] = c
	l.order = append(l.order, c)
	return c, nil
}

func (c *ledgerConv) begin(rec cursor) {
	c.known, c.rec, c.from, c.dirty = true, rec, rec.Seq, true
}

// gap tells that something is held past a hole, or that events came before the first page did.
func (c *ledgerConv) gap() bool {
	if !c.known {
		return c.top > 0
	}
	return c.top > c.rec.Seq
}

// sound tells whether a number can be a seq. What is none counts as lost (B72).
func sound(seq int64) bool { return seq >= 1 && seq <= posthorn.MaxSeq }

// event takes a pushed event, or the own one that a sent stands for.
func (l *ledger) event(prev int64, ev *posthorn.Event, raw []byte) error {
	if !sound(ev.Seq) || prev < 0 || prev >= ev.Seq {
		return nil
	}
	c, err := l.conv(ev.Conv)
	if err != nil || c.void {
		return err
	}
	p := kept
	if c.known {
		p = placeOf(c.rec.Seq, prev, ev.Seq)
	}
	if p == ignored {
		return nil
	}
	if err := c.log.Put(seqKey(ev.Seq), raw); err != nil {
		return err
	}
	c.top = max(c.top, ev.Seq)
	if p == kept {
		return nil
	}
	l.apply(c, *ev)
	return l.absorb(c)
}

func (l *ledger) apply(c *ledgerConv, ev posthorn.Event) {
	c.rec.Seq, c.dirty = ev.Seq, true
	l.applied = append(l.applied, ev)
}

// absorb counts what was kept past a gap that is now closed.
func (l *ledger) absorb(c *ledgerConv) error {
	for c.top > c.rec.Seq {
		k, v := c.log.Cursor().Seek(seqKey(c.rec.Seq + 1))
		ev, err := decodeEvent(v)
		if err != nil || ev.Ev.Seq != keySeq(k) {
			// A record that cannot be read is as good as one that never came: the sync brings it again.
			if err := deleteRange(c.log, keySeq(k), keySeq(k)); err != nil {
				return err
			}
			last, _ := c.log.Cursor().Last()
			c.top = keySeq(last)
			continue
		}
		if placeOf(c.rec.Seq, ev.Prev, ev.Ev.Seq) != applied {
			return nil
		}
		l.apply(c, ev.Ev)
	}
	return nil
}

// page takes the answer to a sync from after, or of the tail where tail is set. It is the server's word on everything
// above after and up to upto: what was kept there past a gap and is not in it, is gone.
func (l *ledger) page(after int64, tail bool, p *posthorn.Page, raws [][]byte) error {
	if p.Start < 0 || p.Upto < 0 || p.Upto > posthorn.MaxSeq {
		return nil
	}
	c, err := l.conv(p.Conv)
	if err != nil || c.void || p.Epoch != l.id.Epoch {
		return err
	}
	if tail {
		after = p.Start
		if !c.known {
			c.begin(cursor{Epoch: l.id.Epoch, Install: l.id.Install, Seq: p.Start, Start: p.Start})
			if err := deleteRange(c.log, 1, p.Start); err != nil {
				return err
			}
		}
	}
	if !c.known && after == 0 {
		c.begin(cursor{Epoch: l.id.Epoch, Install: l.id.Install})
	}
	if !c.known || after > c.rec.Seq || p.Upto <= c.rec.Seq {
		return nil // from before the cursor was set back, or nothing new
	}
	if err := deleteRange(c.log, c.rec.Seq+1, p.Upto); err != nil {
		return err
	}
	for i := range p.Events {
		ev := &p.Events[i]
		if ev.Seq <= c.rec.Seq || ev.Seq > p.Upto {
			continue
		}
		if err := c.log.Put(seqKey(ev.Seq), raws[i]); err != nil {
			return err
		}
		l.apply(c, *ev)
	}
	c.rec.Seq, c.dirty = p.Upto, true
	last, _ := c.log.Cursor().Last()
	c.top = keySeq(last)
	return l.absorb(c)
}

// flush writes the cursors that moved, and beside them what the server last said that it holds of them.
func (l *ledger) flush(acked map[string]int64) error {
	for _, c := range l.order {
		told, ok := acked[c.name]
		if ok && !c.void && c.known && told != c.rec.Acked {
			c.rec.Acked = min(told, c.rec.Seq)
		} else if !c.dirty {
			continue
		}
		if err := l.t.putCursor(c.name, c.rec); err != nil {
			return err
		}
	}
	return l.findTargets()
}

// eventRecord is an event in the form in which a push would have brought it.
func eventRecord(prev int64, ev posthorn.Event) []byte {
	return wire.Append(nil, &wire.Event{Prev: prev, Ev: ev})
}
