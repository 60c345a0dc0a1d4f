package lab

import (
	"strings"
	"testing"
	"time"
)

// A validator that cannot fail proves nothing. Here is one sound history, in which every validator finds nothing, and for
// each of them ways to break it.

// sound is a conversation of ana and bo: opened, three messages, the second one's answer lost and asked for again, bo's
// first push lost, and a crash of everything before the last message.
func sound() ([]Record, *Tables) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var h []Record
	say := func(r Record) {
		at = at.Add(100 * time.Millisecond)
		r.At, r.Conv = at, "c"
		h = append(h, r)
	}
	ana, bo := "ana/phone", "bo/phone"
	apply := func(who string, seq int64, mid string) {
		say(Record{Who: who, What: Applied, Seq: seq, Mid: mid})
		say(Record{Who: who, What: Out, Type: "ack", Seq: seq})
	}
	told := func(who string, seq int64) {
		say(Record{Who: who, What: In, Type: "acked", Delivered: seq})
		say(Record{Who: who, What: Cursor, Delivered: seq, Head: seq, Epoch: 1, Install: 1})
	}
	sent := func(cmid string, seq int64, mid string, dup bool) {
		say(Record{Who: ana, What: In, Type: "sent", Cmid: cmid, Seq: seq, Mid: mid, Dup: dup})
	}
	say(Record{Who: ana, What: In, Type: "welcome", Install: 1, Epoch: 1})
	say(Record{Who: bo, What: In, Type: "welcome", Install: 1, Epoch: 1})
	apply(ana, 1, "m1")
	apply(bo, 1, "m1")
	told(bo, 1)
	sent("k2", 2, "m2", false)
	say(Record{Who: ana, What: Settled, Cmid: "k2", Seq: 2})
	say(Record{Who: bo, What: Lost, Seq: 2})
	say(Record{Who: bo, What: In, Type: "hint", Head: 2, Why: "sweep"})
	say(Record{Who: bo, What: In, Type: "page", Events: []Ref{{2, "m2"}}, Upto: 2, Head: 2})
	apply(bo, 2, "m2")
	told(bo, 2)
	sent("k3", 3, "m3", true)
	say(Record{Who: ana, What: Settled, Cmid: "k3", Seq: 3, Dup: true})
	say(Record{Who: bo, What: In, Type: "event", Seq: 3, Mid: "m3"})
	say(Record{Who: "A", What: Crash})
	say(Record{Who: bo, What: Held, Seq: 1, Mid: "m1"})
	say(Record{Who: bo, What: Held, Seq: 2, Mid: "m2"})
	apply(bo, 3, "m3")
	told(bo, 3)
	say(Record{Who: ana, What: Settled, Cmid: "k9", Code: "FORBIDDEN"})
	return h, &Tables{
		Rows: []Row{{Conv: "c", Seq: 1, Kind: "open", Mid: "m1", Sender: "ana", Cmid: "k1"}, {Conv: "c", Seq: 2, Kind: "msg", Mid: "m2", Sender: "ana", Cmid: "k2"},
			{Conv: "c", Seq: 3, Kind: "msg", Mid: "m3", Sender: "ana", Cmid: "k3"}},
		Stays:  []Stay{{Conv: "c", User: "ana", From: 1, SeesFrom: 1}, {Conv: "c", User: "bo", From: 1, SeesFrom: 1}},
		Places: []Position{{Device: "bo/phone", Conv: "c", Epoch: 1, Install: 1, Delivery: 3}},
		Heads:  map[string]int64{"c": 3}, Floors: map[string]int64{"c": 1},
	}
}

func validators() map[string]validator {
	all := map[string]validator{}
	for _, v := range []validator{validD1(), validD2(), validD3(), validD4(), validD5(3 * time.Second), validD6(), validP1(), validO1(), validV1()} {
		all[v.name] = v
	}
	return all
}

func TestValidators_SoundHistory(t *testing.T) {
	h, tables := sound()
	for name, v := range validators() {
		if found := v.judge(h, tables); len(found) > 0 {
			t.Errorf("%s finds in a sound history: %q", name, found)
		}
	}
}

// nth gives the nth line that fits.
func nth(h []Record, n int, fits func(*Record) bool) *Record {
	for i := range h {
		if fits(&h[i]) {
			if n--; n == 0 {
				return &h[i]
			}
		}
	}
	panic("the sound history has no such line")
}

func frameOf(dir, typ string) func(*Record) bool {
	return func(r *Record) bool { return r.frame(dir, typ) }
}

func whatOf(what string) func(*Record) bool { return func(r *Record) bool { return r.What == what } }

// without takes a line out.
func without(h []Record, line *Record) (rest []Record) {
	for i := range h {
		if &h[i] != line {
			rest = append(rest, h[i])
		}
	}
	return rest
}

// swapped changes the places and the times of two lines.
func swapped(h []Record, a, b *Record) []Record {
	*a, *b = *b, *a
	a.At, b.At = b.At, a.At
	return h
}

func TestValidators_BrokenHistories(t *testing.T) {
	type world = func(h []Record, t *Tables) []Record
	for name, breaks := range map[string]struct {
		validator, want string
		world           world
	}{
		"answered, and no row": {"D1", "no such row", func(h []Record, t *Tables) []Record { t.Rows = t.Rows[:2]; return h }},
		"answered with another row's place": {"D1", "mid", func(h []Record, t *Tables) []Record {
			nth(h, 1, frameOf(In, "sent")).Mid = "m9"
			return h
		}},
		"answered with another's message": {"D1", "the row is", func(h []Record, t *Tables) []Record { t.Rows[1].Sender = "bo"; return h }},

		"two rows of one cmid": {"D2", "2 rows", func(h []Record, t *Tables) []Record {
			t.Rows = append(t.Rows, Row{Conv: "c", Seq: 4, Mid: "m4", Sender: "ana", Cmid: "k2"})
			return h
		}},
		"two places for one cmid": {"D2", "seq 3 for k2, and seq 2 before", func(h []Record, t *Tables) []Record {
			nth(h, 2, frameOf(In, "sent")).Cmid = "k2"
			return h
		}},
		"new twice": {"D2", "a second time", func(h []Record, t *Tables) []Record {
			again := *nth(h, 1, frameOf(In, "sent"))
			return append(h, again)
		}},
		"settled, and no row": {"D2", "0 rows", func(h []Record, t *Tables) []Record { t.Rows[2].Cmid = "k8"; return h }},
		"refused, and a row": {"D2", "1 rows, want 0", func(h []Record, t *Tables) []Record {
			nth(h, 3, whatOf(Settled)).Cmid = "k3"
			return h
		}},

		"confirmed before it was stored": {"D3", "had not stored [2]", func(h []Record, t *Tables) []Record {
			return swapped(h, nth(h, 3, whatOf(Applied)), nth(h, 3, frameOf(Out, "ack")))
		}},
		"confirmed over a hole": {"D3", "had not stored [2]", func(h []Record, t *Tables) []Record {
			h = without(h, nth(h, 3, whatOf(Applied)))
			return without(h, nth(h, 2, whatOf(Held)))
		}},
		"a cursor that nobody asked for": {"D3", "had confirmed 1", func(h []Record, t *Tables) []Record {
			nth(h, 1, whatOf(Cursor)).Delivered = 2
			return h
		}},

		"a cursor that falls": {"D4", "fell from 2 to 1", func(h []Record, t *Tables) []Record { nth(h, 3, whatOf(Cursor)).Delivered = 1; return h }},
		"an answer that falls": {"D4", "fell from 2 to 1", func(h []Record, t *Tables) []Record {
			nth(h, 3, frameOf(In, "acked")).Delivered = 1
			return h
		}},
		"a cursor past the head": {"D4", "visible head 2", func(h []Record, t *Tables) []Record { nth(h, 3, whatOf(Cursor)).Head = 2; return h }},
		"an answer past the head": {"D4", "may see up to 3", func(h []Record, t *Tables) []Record {
			nth(h, 3, frameOf(In, "acked")).Delivered = 103
			return h
		}},

		"a repair that takes too long": {"D5", "allowed are 3000 ms", func(h []Record, t *Tables) []Record {
			lost := nth(h, 1, whatOf(Lost))
			lost.At = lost.At.Add(-3 * time.Second)
			return h
		}},
		"a loss that nobody repairs": {"D5", "never stored", func(h []Record, t *Tables) []Record {
			nth(h, 1, whatOf(Lost)).Seq = 4
			return h
		}},
		"a repair that is not confirmed": {"D5", "never stored and confirmed", func(h []Record, t *Tables) []Record {
			h = without(h, nth(h, 4, frameOf(Out, "ack")))
			return without(h, nth(h, 3, frameOf(Out, "ack")))
		}},
		"no loss at all": {"D5", "nothing was lost", func(h []Record, t *Tables) []Record { return without(h, nth(h, 1, whatOf(Lost))) }},

		"acknowledged and lost": {"D6", "no such row", func(h []Record, t *Tables) []Record { t.Rows = t.Rows[:1]; return h }},
		"acknowledged and replaced": {"D6", "the row has m7", func(h []Record, t *Tables) []Record {
			t.Rows[1].Mid = "m7"
			return h
		}},
		"a cursor that was told and lost": {"D6", "told delivered 2", func(h []Record, t *Tables) []Record { t.Places[0].Delivery = 1; return h }},
		"no crash at all":                 {"D6", "nothing has crashed", func(h []Record, t *Tables) []Record { return without(h, nth(h, 1, whatOf(Crash))) }},

		"a hole":                {"P1", "lacks seq 2..2", func(h []Record, t *Tables) []Record { t.Rows = append(t.Rows[:1], t.Rows[2]); return h }},
		"a hole at the start":   {"P1", "lacks seq 1..1", func(h []Record, t *Tables) []Record { t.Rows = t.Rows[1:]; return h }},
		"a number in the clear": {"P1", "head is said to be 4", func(h []Record, t *Tables) []Record { t.Heads["c"] = 4; return h }},
		"an empty log":          {"P1", "no events", func(h []Record, t *Tables) []Record { t.Rows = nil; return h }},

		"applied twice": {"O1", "when it held 2", func(h []Record, t *Tables) []Record {
			again := *nth(h, 3, whatOf(Applied))
			crash := nth(h, 1, whatOf(Crash))
			*crash = Record{At: crash.At, Who: again.Who, What: Applied, Conv: "c", Seq: again.Seq, Mid: again.Mid}
			return h
		}},
		"applied in the wrong order": {"O1", "over [2]", func(h []Record, t *Tables) []Record {
			a, b := nth(h, 3, whatOf(Applied)), nth(h, 4, whatOf(Applied))
			a.Seq, b.Seq, a.Mid, b.Mid = b.Seq, a.Seq, b.Mid, a.Mid
			return h
		}},
		"applied what is not in the log": {"O1", "the row is", func(h []Record, t *Tables) []Record { nth(h, 4, whatOf(Applied)).Mid = "m9"; return h }},
		"a store with a hole": {"O1", "and not [2]", func(h []Record, t *Tables) []Record {
			h = without(h, nth(h, 3, whatOf(Applied)))
			held := nth(h, 2, whatOf(Held))
			held.Seq, held.Mid = 3, "m3"
			return h
		}},

		"pushed what is not theirs": {"V1", "was shown seq 3", func(h []Record, t *Tables) []Record { t.Stays[1].To = 2; return h }},
		"paged what is not theirs": {"V1", "was shown seq 2", func(h []Record, t *Tables) []Record {
			t.Stays[1].From, t.Stays[1].SeesFrom = 3, 3
			return h
		}},
		"told of a head that is not theirs": {"V1", "told of seq 3, and may see up to 2", func(h []Record, t *Tables) []Record {
			t.Stays[1].To = 2
			nth(h, 1, frameOf(In, "hint")).Head = 3
			return h
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, tables := sound()
			h = breaks.world(h, tables)
			found := validators()[breaks.validator].judge(h, tables)
			if all := strings.Join(found, "; "); !strings.Contains(all, breaks.want) {
				t.Errorf("%s finds %q, want %q", breaks.validator, found, breaks.want)
			}
		})
	}
}
