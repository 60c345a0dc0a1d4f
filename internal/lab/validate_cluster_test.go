package lab

import (
	"strings"
	"testing"
	"time"
)

// The validators of many gateways: for each a sound history, and ways to break it.

// story is a history in the making; each line comes a moment after the one before.
type story struct {
	at time.Time
	h  []Record
}

func (s *story) say(r Record) {
	if s.at.IsZero() {
		s.at = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	}
	s.at = s.at.Add(100 * time.Millisecond)
	r.At = s.at
	if r.Conv == "" && r.user() != "" {
		r.Conv = "c"
	}
	s.h = append(s.h, r)
}

func (s *story) dump(who string, epoch int64, mids ...string) {
	for i, mid := range mids {
		s.say(Record{Who: who, What: Held, Seq: int64(i + 1), Mid: mid, Epoch: epoch})
	}
	s.say(Record{Who: who, What: Note, Text: dumped})
}

// rewoundStory: ana's and bo's second message is lost with the history of epoch 1. bo's comes first in epoch 2.
func rewoundStory() ([]Record, *Tables) {
	s := &story{}
	ana, bo := "ana/phone", "bo/phone"
	for _, who := range []string{ana, bo} {
		s.say(Record{Who: who, What: Started})
		s.say(Record{Who: who, What: In, Type: "welcome", Epoch: 1, Install: 1})
		s.say(Record{Who: who, What: Applied, Seq: 1, Mid: "m1", Epoch: 1})
	}
	s.say(Record{Who: ana, What: In, Type: "sent", Cmid: "ka", Seq: 2, Mid: "lost-a", Epoch: 1})
	s.say(Record{Who: ana, What: Settled, Cmid: "ka", Seq: 2})
	s.say(Record{Who: bo, What: In, Type: "event", Seq: 2, Mid: "lost-a", Epoch: 1})
	s.say(Record{Who: bo, What: Applied, Seq: 2, Mid: "lost-a", Epoch: 1})
	s.say(Record{Who: "postgres", What: Rewound})
	s.say(Record{Who: bo, What: In, Type: "welcome", Epoch: 2, Install: 1})
	s.say(Record{Who: bo, What: In, Type: "sent", Cmid: "kb", Seq: 2, Mid: "m2", Epoch: 2})
	s.say(Record{Who: bo, What: Settled, Cmid: "kb", Seq: 2})
	s.say(Record{Who: bo, What: Applied, Seq: 2, Mid: "m2", Epoch: 2})
	s.say(Record{Who: ana, What: In, Type: "welcome", Epoch: 2, Install: 1})
	s.say(Record{Who: ana, What: In, Type: "page", Epoch: 2, Events: []Ref{{2, "m2"}}, Upto: 2, Head: 2})
	s.say(Record{Who: ana, What: Applied, Seq: 2, Mid: "m2", Epoch: 2})
	s.say(Record{Who: ana, What: In, Type: "sent", Cmid: "ka", Seq: 3, Mid: "m3", Epoch: 2})
	s.say(Record{Who: ana, What: Settled, Cmid: "ka", Seq: 3})
	s.say(Record{Who: ana, What: Applied, Seq: 3, Mid: "m3", Epoch: 2})
	s.say(Record{Who: bo, What: Applied, Seq: 3, Mid: "m3", Epoch: 2})
	s.dump(ana, 2, "m1", "m2", "m3")
	s.dump(bo, 2, "m1", "m2", "m3")
	return s.h, &Tables{Epoch: 2,
		Rows: []Row{{Conv: "c", Seq: 1, Kind: "open", Mid: "m1", Sender: "ana"}, {Conv: "c", Seq: 2, Kind: "msg", Mid: "m2", Sender: "bo", Cmid: "kb"},
			{Conv: "c", Seq: 3, Kind: "msg", Mid: "m3", Sender: "ana", Cmid: "ka"}},
		Stays: []Stay{{Conv: "c", User: "ana", From: 1, SeesFrom: 1}, {Conv: "c", User: "bo", From: 1, SeesFrom: 1}},
		Heads: map[string]int64{"c": 3}, Floors: map[string]int64{"c": 1}}
}

// movedStory: bo's gateway dies, and bo is served elsewhere.
func movedStory() ([]Record, *Tables) {
	s := &story{}
	for _, state := range []string{"connecting", "online", "offline", "connecting", "online"} {
		s.say(Record{Who: "bo/phone", What: State, Type: state})
	}
	s.dump("bo/phone", 1, "m1")
	return s.h, &Tables{Rows: []Row{{Conv: "c", Seq: 1, Mid: "m1"}}, Stays: []Stay{{Conv: "c", User: "bo", From: 1, SeesFrom: 1}}}
}

// reinstalledStory: bo's phone is installed anew while the old installation goes on.
func reinstalledStory() ([]Record, *Tables) {
	s := &story{}
	old, again := "bo/phone@A", "bo/phone@B"
	s.say(Record{Who: old, What: In, Type: "welcome", Install: 1})
	s.say(Record{Who: old, What: Out, Type: "ack", RID: "1", Seq: 2})
	s.say(Record{Who: old, What: In, Type: "acked", RID: "1", Delivered: 2})
	s.say(Record{Who: "bo/phone", What: Cursor, Install: 1, Delivered: 2})
	s.say(Record{Who: again, What: In, Type: "welcome", Install: 2})
	s.say(Record{Who: old, What: Out, Type: "ack", RID: "2", Seq: 3})
	s.say(Record{Who: old, What: In, Type: "error", RID: "2", Code: "STALE_INSTALL"})
	s.say(Record{Who: again, What: Out, Type: "ack", RID: "1", Seq: 1})
	s.say(Record{Who: again, What: In, Type: "acked", RID: "1", Delivered: 1})
	s.say(Record{Who: "bo/phone", What: Cursor, Install: 2, Delivered: 1})
	return s.h, &Tables{}
}

func TestClusterValidators(t *testing.T) {
	type telling = func() ([]Record, *Tables)
	for _, tc := range []struct {
		name, want string
		v          validator
		tell       telling
		breaks     func(h []Record, t *Tables) []Record
	}{
		{"an epoch that is told of two histories", "that of another history", validE1(), rewoundStory, func(h []Record, t *Tables) []Record {
			nth(h, 3, frameOf(In, "welcome")).Epoch = 1
			return h
		}},
		{"two events under one seq", "seq 2 is lost-a to bo/phone and m2", validE1(), rewoundStory, func(h []Record, t *Tables) []Record {
			r := nth(h, 3, whatOf(Applied))
			r.Epoch = 2
			return h
		}},
		{"a page of another history", "in epoch 2 seq 2", validE1(), rewoundStory, func(h []Record, t *Tables) []Record {
			nth(h, 1, frameOf(In, "page")).Events[0].Mid = "lost-a"
			return h
		}},
		{"what was lost does not come back", "ka of ana has 0 rows", validE1(), rewoundStory, func(h []Record, t *Tables) []Record {
			t.Rows[2].Cmid = "kx"
			return h
		}},
		{"no rewind at all", "nothing was rewound", validE1(), rewoundStory, func(h []Record, t *Tables) []Record { return without(h, nth(h, 1, whatOf(Rewound))) }},
		{"a store that kept the lost history", "bo/phone holds seq 2 as lost-a", validE1(), rewoundStory, func(h []Record, t *Tables) []Record {
			nth(h, 5, whatOf(Held)).Mid = "lost-a"
			return h
		}},
		{"a cursor that fell without a rewind", "fell from 2 to 1", validD4(), rewoundStory, func(h []Record, t *Tables) []Record {
			return append(h, Record{Who: "bo/phone", What: Cursor, Conv: "c", Epoch: 2, Delivered: 2, Head: 3}, Record{Who: "bo/phone", What: Cursor, Conv: "c", Epoch: 2, Delivered: 1, Head: 3})
		}},
		{"two places in one epoch", "seq 2 before", validD2(), rewoundStory, func(h []Record, t *Tables) []Record {
			nth(h, 1, frameOf(In, "sent")).Epoch = 2
			return h
		}},
		{"applied over a hole in the new epoch", "over [2]", validO1(), rewoundStory, func(h []Record, t *Tables) []Record {
			return without(h, nth(h, 5, whatOf(Applied)))
		}},
		{"a store that lacks something", "does not hold [3]", validStores(), rewoundStory, func(h []Record, t *Tables) []Record {
			return without(h, nth(h, 6, whatOf(Held)))
		}},
		{"a store that holds something twice", "holds seq 3 twice", validStores(), rewoundStory, func(h []Record, t *Tables) []Record {
			r := nth(h, 5, whatOf(Held))
			r.Seq, r.Mid = 3, "m3"
			return h
		}},
		{"a store that holds what is not its user's", "not for it", validStores(), rewoundStory, func(h []Record, t *Tables) []Record {
			t.Stays[1].To = 2
			return h
		}},
		{"nobody was asked", "no device was asked", validStores(), rewoundStory, func([]Record, *Tables) []Record { return nil }},
		{"a device that stays offline", "bo/phone is offline", validG1(), movedStory, func(h []Record, t *Tables) []Record { return append(h[:3], h[5:]...) }},
		{"nobody moved", "nobody has lost", validG1(), movedStory, func(h []Record, t *Tables) []Record { return append(h[:2], h[5:]...) }},
		{"an old install is answered", "as install 1", validI1(), reinstalledStory, func(h []Record, t *Tables) []Record {
			r := nth(h, 1, frameOf(In, "error"))
			r.Type, r.Delivered = "acked", 3
			return h
		}},
		{"an old install moves the new one's cursor", "has confirmed 1", validI1(), reinstalledStory, func(h []Record, t *Tables) []Record {
			nth(h, 2, whatOf(Cursor)).Delivered = 3
			return h
		}},
		{"no old install", "nothing that an old install said", validI1(), reinstalledStory, func(h []Record, t *Tables) []Record {
			return without(h, nth(h, 1, frameOf(In, "error")))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, tables := tc.tell()
			if found := tc.v.judge(h, tables); len(found) > 0 {
				t.Errorf("%s finds in the sound history: %q", tc.v.name, found)
			}
			h, tables = tc.tell()
			h = tc.breaks(h, tables)
			if all := strings.Join(tc.v.judge(h, tables), "; "); !strings.Contains(all, tc.want) {
				t.Errorf("%s finds %q, want %q", tc.v.name, all, tc.want)
			}
		})
	}
}

// TestValidD6_NewEpoch: an answered message that is gone is lost, even where a new epoch tells of it.
func TestValidD6_NewEpoch(t *testing.T) {
	h, tables := rewoundStory()
	h = append(h, Record{At: h[len(h)-1].At.Add(time.Second), Who: "postgres", What: Crash})
	if found := strings.Join(validD6().judge(h, tables), "; "); !strings.Contains(found, "lost-a") {
		t.Errorf("D6 finds %q", found)
	}
}
