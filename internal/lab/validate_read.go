package lab

import "github.com/posthorn/posthorn"

// What devices were shown, and what they made of it.

// validO1: a device applies each event once, in the order of seq, and between two of them lies nothing that it may see.
func validO1() validator {
	return validator{posthorn.O1, func(h []Record, t *Tables) []string {
		var p problems
		for _, d := range devices(h) {
			for _, conv := range convsOf(d.lines) {
				p.checkOrder(d, conv, t)
			}
		}
		return p
	}}
}

func (p *problems) checkOrder(d *lineage, conv string, t *Tables) {
	at, epoch := startOf(t, d.device, conv), int64(0)
	for _, r := range d.lines {
		if r.Conv != conv {
			continue
		}
		if (r.What == Held || r.What == Applied) && r.Epoch != epoch {
			if epoch != 0 {
				at = min(at, r.Seq-1) // in a new epoch the log may be cut back; E1 judges to where
			}
			epoch = r.Epoch
		}
		if r.What == Held && r.Seq > at {
			// On its disk, though its process did not live to tell: the next one goes on from here.
			if lack := t.visible(d.user, conv, at, r.Seq-1); len(lack) > 0 {
				p.add("%s holds seq %d and not %v", d.device, r.Seq, lack)
			}
			at = r.Seq
		}
		if r.What != Applied {
			continue
		}
		if r.Seq <= at {
			p.add("%s applied seq %d when it held %d", d.device, r.Seq, at)
		}
		if lack := t.visible(d.user, conv, at, r.Seq-1); len(lack) > 0 {
			p.add("%s applied seq %d over %v", d.device, r.Seq, lack)
		}
		if row := t.row(conv, r.Seq); t.speaksOf(r.Epoch) && (row == nil || row.Mid != r.Mid) {
			p.add("%s applied seq %d as %s, the row is %+v", d.device, r.Seq, r.Mid, row)
		}
		at = max(at, r.Seq)
	}
}

// validV1: nobody is shown an event that they may not see, by a push or in a page. A cursor's upto and a list's head are
// numbers and show nothing; but they too never pass what the user may see.
func validV1() validator {
	return validator{posthorn.V1, func(h []Record, t *Tables) []string {
		var p problems
		shown := func(r *Record, seq int64) {
			if !t.sees(r.user(), r.Conv, seq) {
				p.add("%s was shown seq %d of %s", r.Who, seq, r.Conv)
			}
		}
		for i := range h {
			r := &h[i]
			switch {
			case r.frame(In, "event"):
				shown(r, r.Seq)
			case r.frame(In, "page"):
				for _, ev := range r.Events {
					shown(r, ev.Seq)
				}
			}
			if told := max(r.Head, r.Upto); r.What == In && r.user() != "" && told > t.head(r.user(), r.Conv) {
				p.add("%s was told of seq %d, and may see up to %d", r.Who, told, t.head(r.user(), r.Conv))
			}
		}
		return p
	}}
}
