package lab

import (
	"time"

	"github.com/posthorn/posthorn"
)

// The second half of a message's way: what a device has confirmed, against what it has stored.

// validD3: a device confirms only what it has stored without a hole, and the stored cursor moves only when it confirms.
func validD3() validator {
	return validator{posthorn.D3, func(h []Record, t *Tables) []string {
		var p problems
		for _, d := range devices(h) {
			stored := map[string]seqs{}
			for _, r := range d.lines {
				switch {
				case r.What == Applied || r.What == Held:
					if stored[r.Conv] == nil {
						stored[r.Conv] = seqs{}
					}
					stored[r.Conv][r.Seq] = true
				case r.frame(Out, "ack"):
					want := t.visible(d.user, r.Conv, startOf(t, d.device, r.Conv), r.Seq)
					if lack := stored[r.Conv].missing(want); len(lack) > 0 {
						p.add("%s confirmed seq %d and had not stored %v", d.device, r.Seq, lack)
					}
				case r.What == Cursor:
					p.checkConfirmed(d, r)
				}
			}
		}
		return p
	}}
}

// checkConfirmed: a cursor that was seen in the table had been asked for by then. Times are compared, not places in the
// history, since the sampler and the device are heard of independently.
func (p *problems) checkConfirmed(d *lineage, seen Record) {
	asked := int64(0)
	for _, r := range d.lines {
		if r.frame(Out, "ack") && r.Conv == seen.Conv && !r.At.After(seen.At) {
			asked = max(asked, r.Seq)
		}
	}
	if seen.Delivered > asked {
		p.add("the cursor of %s was %d, and the device had confirmed %d", d.device, seen.Delivered, asked)
	}
}

// validD4: within an epoch and install a cursor never falls, and never passes what the device's user may see; neither in
// the table nor in what the device is told.
func validD4() validator {
	return validator{posthorn.D4, func(h []Record, t *Tables) []string {
		var p problems
		type life struct {
			who, conv      string
			epoch, install int64
		}
		told, tabled := map[life]int64{}, map[life]int64{}
		session := map[string]Record{} // the newest welcome of each connection
		for _, r := range h {
			k := life{who: r.Who, conv: r.Conv, epoch: r.Epoch, install: r.Install}
			top := tabled
			switch {
			case r.frame(In, "welcome"):
				session[r.Who] = r
				continue
			case r.What == Rewound:
				tabled = map[life]int64{} // the rows went back with everything; they are void in the epoch to come
				continue
			case r.frame(In, "acked"):
				// A connection hears of one cursor in the order in which it was written.
				top, k.epoch, k.install = told, session[r.Who].Epoch, session[r.Who].Install
				if head := t.head(r.user(), r.Conv); r.Delivered > head && t.speaksOf(k.epoch) {
					p.add("%s was told delivered %d, and may see up to %d", r.Who, r.Delivered, head)
				}
			case r.What == Cursor:
				if r.Delivered > r.Head {
					p.add("the cursor of %s was %d, and its visible head %d", r.Who, r.Delivered, r.Head)
				}
			default:
				continue
			}
			if r.Delivered < top[k] {
				p.add("the cursor of %s fell from %d to %d", r.Who, top[k], r.Delivered)
			}
			top[k] = max(top[k], r.Delivered)
		}
		return p
	}}
}

// validD5: what was lost on the way to a device is stored and confirmed by it within the bound, counted from the moment of
// the loss.
func validD5(bound time.Duration) validator {
	return validator{posthorn.D5, func(h []Record, _ *Tables) []string {
		var p problems
		losses := 0
		for _, lost := range h {
			if lost.What != Lost {
				continue
			}
			losses++
			took, ok := repair(h, &lost)
			switch {
			case !ok:
				p.add("seq %d, lost to %s, was never stored and confirmed", lost.Seq, lost.Who)
			case took > bound:
				p.add("seq %d, lost to %s, was stored and confirmed after %s, allowed are %s", lost.Seq, lost.Who, ms(took), ms(bound))
			}
		}
		if losses == 0 {
			p.add("nothing was lost, so nothing is shown")
		}
		return p
	}}
}

// repair tells how long after a loss the device had stored the event and confirmed it.
func repair(h []Record, lost *Record) (took time.Duration, ok bool) {
	stored := false
	for _, r := range h {
		if r.device() != deviceOf(lost.Who) || r.Conv != lost.Conv {
			continue
		}
		stored = stored || (r.What == Applied || r.What == Held) && r.Seq == lost.Seq
		if stored && r.At.After(lost.At) && r.frame(Out, "ack") && r.Seq >= lost.Seq {
			return r.At.Sub(lost.At), true
		}
	}
	return 0, false
}
