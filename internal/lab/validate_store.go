package lab

import (
	"math"

	"github.com/posthorn/posthorn"
)

// What is left when everything is over: the devices' stores against the log.

// validStores: every device that was asked at the end holds exactly what its user may see above its start mark, and each
// event is the log's.
func validStores() validator {
	return validator{"stores", func(h []Record, t *Tables) []string {
		var p problems
		p.checkStores(h, t)
		return p
	}}
}

func (p *problems) checkStores(h []Record, t *Tables) {
	asked := 0
	for _, d := range devices(h) {
		held, told := d.lastDump()
		if !told {
			continue
		}
		asked++
		for _, conv := range t.convs() {
			want := t.visible(d.user, conv, startOf(t, d.device, conv), math.MaxInt64)
			have := seqs{}
			for _, r := range held {
				if r.Conv != conv {
					continue
				}
				if have[r.Seq] {
					p.add("%s holds seq %d twice", d.device, r.Seq)
				}
				have[r.Seq] = true
				if row := t.row(conv, r.Seq); row == nil || row.Mid != r.Mid {
					p.add("%s holds seq %d as %s, the row is %+v", d.device, r.Seq, r.Mid, row)
				} else if !t.sees(d.user, conv, r.Seq) {
					p.add("%s holds seq %d, which is not for it", d.device, r.Seq)
				}
			}
			if lack := have.missing(want); len(lack) > 0 {
				p.add("%s does not hold %v", d.device, lack)
			}
		}
	}
	if asked == 0 {
		p.add("no device was asked what it holds, so nothing is shown")
	}
}

// dumped ends what a device tells of its disk.
const dumped = "told what is on disk"

// lastDump is what the device told of its disk when it was asked last.
func (d *lineage) lastDump() (held []Record, told bool) {
	var now []Record
	for _, r := range d.lines {
		switch {
		case r.What == Held:
			now = append(now, r)
		case r.What == Started:
			now = nil
		case r.What == Note && r.Text == dumped:
			held, told, now = now, true, nil
		}
	}
	return held, told
}

// validE1: history that was rewound is noticed. No epoch is given to two histories, nobody holds two events under one
// (epoch, conversation, seq), what was told `sent` is in the log at the end, and the stores equal it.
func validE1() validator {
	return validator{posthorn.E1, func(h []Record, t *Tables) []string {
		var p problems
		p.checkEpochs(h)
		p.checkMerged(h)
		for i := range h {
			if r := &h[i]; r.What == Settled && r.Code == "" {
				p.countRows([2]string{r.user(), r.Cmid}, 1, t)
			}
		}
		p.checkStores(h, t)
		return p
	}}
}

// checkEpochs: after a rewind nobody is welcomed in an epoch that anybody was welcomed in before it.
func (p *problems) checkEpochs(h []Record) {
	past, rewinds := 0, 0
	before := map[int64]int{} // epoch → the rewind after which it was told first
	reported := map[int64]bool{}
	for _, r := range h {
		switch {
		case r.What == Rewound:
			rewinds++
			past = rewinds
		case r.frame(In, "welcome"):
			since, known := before[r.Epoch]
			if !known {
				before[r.Epoch] = past
			} else if since != past && !reported[r.Epoch] {
				reported[r.Epoch] = true
				p.add("%s was welcomed in epoch %d, which is that of another history", r.Who, r.Epoch)
			}
		}
	}
	if rewinds == 0 {
		p.add("nothing was rewound, so nothing is shown")
	}
}

// checkMerged: under one epoch a seq is one event, whoever was told of it.
func (p *problems) checkMerged(h []Record) {
	type place struct {
		epoch int64
		conv  string
		seq   int64
	}
	first := map[place]Record{}
	see := func(r Record, seq int64, mid string) {
		if mid == "" || seq == 0 {
			return
		}
		k := place{r.Epoch, r.Conv, seq}
		if one, known := first[k]; !known {
			r.Mid = mid
			first[k] = r
		} else if one.Mid != mid {
			p.add("in epoch %d seq %d is %s to %s and %s to %s", r.Epoch, seq, one.Mid, one.Who, mid, r.Who)
		}
	}
	for _, r := range h {
		switch {
		case r.What == Applied || r.What == Held || r.frame(In, "sent") || r.frame(In, "event"):
			see(r, r.Seq, r.Mid)
		case r.frame(In, "page"):
			for _, ev := range r.Events {
				see(r, ev.Seq, ev.Mid)
			}
		}
	}
}
