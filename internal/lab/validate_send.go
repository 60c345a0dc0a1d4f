package lab

import (
	"time"

	"github.com/posthorn/posthorn"
)

// The first half of a message's way: what its sender was told, against the rows.

// validD1: whoever was told sent{seq} finds the row, and it is theirs. The tables were read after every crash of the
// check, so an answer that came before COMMIT is found out by the row that is not there.
func validD1() validator {
	return validator{posthorn.D1, func(h []Record, t *Tables) []string {
		var p problems
		for i := range h {
			if r := &h[i]; r.frame(In, "sent") && t.speaksOf(r.Epoch) {
				p.checkRow(r, t)
			}
		}
		return p
	}}
}

func (p *problems) checkRow(r *Record, t *Tables) {
	switch row := t.row(r.Conv, r.Seq); {
	case row == nil:
		p.add("%s was told sent seq %d for %s, and there is no such row", r.Who, r.Seq, r.Cmid)
	case row.Mid != r.Mid:
		p.add("%s was told sent seq %d with mid %s, the row has %s", r.Who, r.Seq, r.Mid, row.Mid)
	case row.Sender != r.user() || r.Cmid != "" && row.Cmid != r.Cmid:
		p.add("%s was told sent seq %d for %s, the row is %s of %s", r.Who, r.Seq, r.Cmid, row.Cmid, row.Sender)
	}
}

// validD2: however often a cmid was sent, there is one event, everybody is told the same place, and only the first telling
// may say that it is new. What left the outbox as answered has its row; a refused item has none.
func validD2() validator {
	return validator{posthorn.D2, func(h []Record, t *Tables) []string {
		var p problems
		type once struct {
			user, cmid string
			epoch      int64 // in a new sequence space it may get a new place
		}
		first := map[once]Record{}
		for _, r := range h {
			key := [2]string{r.user(), r.Cmid}
			switch {
			case r.frame(In, "sent") && r.Cmid != "":
				told := once{key[0], key[1], r.Epoch}
				before, again := first[told]
				switch {
				case !again:
					first[told] = r
				case before.Seq != r.Seq || before.Mid != r.Mid:
					p.add("%s was told seq %d for %s, and seq %d before", r.Who, r.Seq, r.Cmid, before.Seq)
				case !r.Dup:
					p.add("%s was told dup=false for %s a second time", r.Who, r.Cmid)
				}
				p.countRows(key, 1, t)
			case r.What == Settled && r.Code == "":
				p.countRows(key, 1, t)
			case r.What == Settled:
				p.countRows(key, 0, t)
			}
		}
		return p
	}}
}

func (p *problems) countRows(key [2]string, want int, t *Tables) {
	if n := len(t.keyed(key[0], key[1])); n != want {
		p.add("%s of %s has %d rows, want %d", key[1], key[0], n, want)
	}
}

// validD6: what was told before the last crash, sent or acked, is there after it.
func validD6() validator {
	return validator{posthorn.D6, func(h []Record, t *Tables) []string {
		var p problems
		var last time.Time
		for _, r := range h {
			if r.What == Crash && r.At.After(last) {
				last = r.At
			}
		}
		if last.IsZero() {
			p.add("nothing has crashed, so nothing is shown")
		}
		for i := range h {
			r := &h[i]
			switch {
			case !r.At.Before(last):
			case r.frame(In, "sent"): // of whichever epoch: a new one is no excuse
				p.checkRow(r, t)
			case r.frame(In, "acked"):
				place := t.place(r.device(), r.Conv)
				if place == nil || place.Delivery < r.Delivered {
					p.add("%s was told delivered %d, and the cursor is %+v", r.Who, r.Delivered, place)
				}
			}
		}
		return p
	}}
}

// validP1: each conversation's numbers run from its floor to its head without a hole, and the next one follows.
func validP1() validator {
	return validator{posthorn.P1, func(_ []Record, t *Tables) []string {
		var p problems
		if len(t.Rows) == 0 {
			p.add("there are no events, so nothing is shown")
		}
		next := map[string]int64{}
		for _, conv := range t.convs() {
			next[conv] = max(t.Floors[conv], 1)
		}
		for _, r := range t.Rows {
			switch {
			case r.Seq < t.Floors[r.Conv]:
			case r.Seq > next[r.Conv]:
				p.add("%s lacks seq %d..%d", r.Conv, next[r.Conv], r.Seq-1)
			}
			next[r.Conv] = r.Seq + 1
		}
		for conv, want := range next {
			if head := t.Heads[conv]; head != want-1 {
				p.add("%s ends with seq %d, and its head is said to be %d", conv, want-1, head)
			}
		}
		return p
	}}
}
