package client

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// Goal: a client that sees a higher seq first neither confirms it nor steps over what is still on its way.
// Method: the case's own numbers. A real process whose cursor is 50 connects to a log that ends at 60; 61 is pushed before
// any sync is answered, the sync brings 51–54, what follows is held. The process is killed when it has 61 on disk and has
// confirmed 54. Its file and its next life are judged.
func TestB07_AHigherSeqIsSeenFirst(t *testing.T) {
	f := newFake()
	url, path := listen(t, f), t.TempDir()+"/store"
	f.post("room", 50)
	c := open(t, helperConfig(url, path))
	waitCursor(t, c, "room", 50)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	f.post("room", 10)
	f.locked(func() {
		f.seen, f.acked, f.pageCap = nil, nil, 4
		f.on = func(s *fakeSocket, fr wire.Frame) bool {
			switch fr := fr.(type) {
			case *wire.Sub:
				f.serve(s, fr)
				room := f.convs["room"]
				body := "room 61"
				ev := f.append(room, posthorn.Event{Kind: posthorn.KindMsg, Sender: "bob", Cmid: "bob-61", Body: &body})
				f.pushTo(room, ev.Seq, nil)
				return true
			case *wire.Sync:
				return fr.After >= 54 // 55–57 are held
			}
			return false
		}
	})

	held54 := startChild(t, url, path, "")
	f.until(t, "the ack of 54 and the sync behind it", func() bool {
		return slices.ContainsFunc(f.acked, func(a wire.Ack) bool { return a.Seq == 54 }) &&
			slices.ContainsFunc(f.seen, func(fr wire.Frame) bool { y, ok := fr.(*wire.Sync); return ok && y.After == 54 })
	})
	held54.killed(t)

	inspect(t, path, "room", func(tx storeTx, rec cursor) {
		if rec.Seq != 54 {
			t.Errorf("the cursor on disk is %d, want 54", rec.Seq)
		}
		if ev, err := tx.event("room", 61); ev == nil || err != nil {
			t.Errorf("61 is not on disk past the gap: %v", err)
		}
		if evs, err := tx.events("room", 0); err != nil || len(evs) != 54 {
			t.Errorf("%d events count as held, want 54 (%v)", len(evs), err)
		}
	})
	if acks := f.acks("room"); slices.Max(acks) != 54 {
		t.Errorf("acks %v, want none above 54", acks)
	}

	f.locked(func() { f.seen, f.acked, f.on, f.pageCap = nil, nil, nil, 0 })
	var mu sync.Mutex
	var applied []int64
	cfg := helperConfig(url, path)
	cfg.Hooks.Applied = func(evs []posthorn.Event) {
		mu.Lock()
		defer mu.Unlock()
		applied = append(applied, seqs(evs)...)
	}
	c = open(t, cfg)
	waitCursor(t, c, "room", 61)
	f.until(t, "the ack of 61", func() bool { return f.convs["room"].delivered == 61 })
	if syncs := sentFrames[*wire.Sync](f); syncs[0].After != 54 {
		t.Errorf("after the restart it synced from %d, want 54", syncs[0].After)
	}
	sameLog(t, c, f, "room")
	mu.Lock()
	defer mu.Unlock()
	if want := []int64{55, 56, 57, 58, 59, 60, 61}; !slices.Equal(applied, want) {
		t.Errorf("applied %v after the restart, want %v", applied, want)
	}
}

// Goal: the log is complete and in order whatever is pushed while it is paged.
// Method: pages of three, pushes lost at random, events that the user may not see, and somebody who writes all along.
func TestO1_SyncWhileOthersWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 100)
		n := 0
		f.locked(func() {
			f.pageCap = 3
			for _, seq := range []int64{1, 7, 8, 9, 60, 100, 120, 121} {
				f.convs["room"].hidden[seq] = true
			}
			f.mute = func(fr wire.Frame) bool {
				if _, ok := fr.(*wire.Event); ok {
					n++
					return n%3 == 0
				}
				return false
			}
		})
		cfg.Hooks.Applied = func([]posthorn.Event) {
			if f.seqOf("room") < 160 {
				f.post("room", 1)
			}
		}
		c, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		feed := c.Subscribe(1000)
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			pass(time.Second)
			f.each(&wire.Hint{Conv: "room", Head: 1, Why: "sweep"}) // what a sweep does where the last push was lost
		}
		pass(time.Second)
		if f.seqOf("room") != 160 {
			t.Fatalf("the log ends at %d, want 160", f.seqOf("room"))
		}
		sameLog(t, c, f, "room")
		feed.Close()
		var fed []int64
		for ch := range feed.C() {
			if ch.Kind == ChangeEvent {
				fed = append(fed, ch.Event.Seq)
			}
		}
		if want := seqs(f.log("room")); !slices.Equal(fed, want) {
			t.Errorf("the feed told %v, want %v", fed, want)
		}
		if got := f.acks("room"); got[len(got)-1] != f.seqOf("room") || !slices.IsSorted(got) {
			t.Errorf("acks %v, want rising to %d", got, f.seqOf("room"))
		}
	})
}

func (f *fake) seqOf(conv string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.convs[conv].head()
}

// Goal: whatever comes, in whatever order and however often, what counts as held is exactly the visible events up to the
// cursor, and the cursor never falls.
// Method: random logs with hidden seqs and lost content; random pushes, pages, stale pages and restarts against the
// ledger on a real file.
func TestO1_CursorAutomaton(t *testing.T) {
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		path := fmt.Sprintf("%s/%d", dir, runs)
		m := drawModel(t)
		s, err := openStore(path, true)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.close() }()
		var had int64
		check := func() {
			err := s.view(func(tx storeTx) error {
				rec, known, err := tx.cursor("c")
				evs, err2 := tx.events("c", 0)
				if err != nil || err2 != nil {
					return fmt.Errorf("%v %v", err, err2)
				}
				if known && rec.Seq < had {
					t.Fatalf("the cursor fell from %d to %d", had, rec.Seq)
				}
				had = rec.Seq
				if got, want := seqs(evs), m.visible(rec.Start, rec.Seq); !slices.Equal(got, want) {
					t.Fatalf("cursor %d from %d: holds %v, want %v", rec.Seq, rec.Start, got, want)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		step := func(fn func(*ledger) error) {
			err := s.update(func(tx storeTx) error {
				l := newLedger(tx, identity{Epoch: 1, Install: 1}, m.beginning)
				if err := fn(l); err != nil {
					return err
				}
				return l.flush(nil)
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			check()
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				seq := rapid.SampledFrom(m.shown).Draw(t, "seq")
				step(func(l *ledger) error {
					ev := m.event(seq)
					return l.event(m.prev(seq), &ev, eventRecord(m.prev(seq), ev))
				})
			},
			"burst": func(t *rapid.T) {
				from := rapid.IntRange(0, len(m.shown)-1).Draw(t, "from")
				step(func(l *ledger) error {
					for _, seq := range m.shown[from:min(from+5, len(m.shown))] {
						ev := m.event(seq)
						if err := l.event(m.prev(seq), &ev, eventRecord(m.prev(seq), ev)); err != nil {
							return err
						}
					}
					return nil
				})
			},
			"page": func(t *rapid.T) {
				after := rapid.SampledFrom([]int64{had, had, 0, had / 2, m.head}).Draw(t, "after")
				limit := rapid.IntRange(1, 8).Draw(t, "limit")
				tail := false
				if !m.beginning && !m.begun {
					tail, after = true, rapid.Int64Range(0, m.head).Draw(t, "start")
					m.begun = true
				}
				p := m.page(after, limit)
				m.lose(had, &p)
				step(func(l *ledger) error {
					return l.page(after, tail, &p, rawEvents(&p, wire.Append(nil, &wire.Page{Page: p})))
				})
			},
			"restart": func(t *rapid.T) {
				if err := s.close(); err != nil {
					t.Fatal(err)
				}
				if s, err = openStore(path, true); err != nil {
					t.Fatal(err)
				}
				check()
			},
		})
		for range 2 * m.head {
			p := m.page(had, 8)
			m.lose(had, &p)
			tail := !m.beginning && !m.begun
			m.begun = true
			step(func(l *ledger) error {
				return l.page(had, tail, &p, rawEvents(&p, wire.Append(nil, &wire.Page{Page: p})))
			})
		}
		if had != m.head {
			t.Fatalf("after syncing to the end the cursor is %d, want %d", had, m.head)
		}
	})
}

// model is a log as one user may see it.
type model struct {
	head      int64
	floor     int64 // content below it is no longer stored
	lost      map[int64]bool
	shown     []int64
	beginning bool
	begun     bool // the first page of a tail was applied
}

func drawModel(t *rapid.T) *model {
	m := &model{head: rapid.Int64Range(1, 40).Draw(t, "head"), beginning: rapid.Bool().Draw(t, "beginning"), lost: map[int64]bool{}}
	m.floor = rapid.Int64Range(0, m.head).Draw(t, "floor")
	for seq := int64(1); seq <= m.head; seq++ {
		if rapid.IntRange(0, 4).Draw(t, "hidden") > 0 || seq == m.head {
			m.shown = append(m.shown, seq)
		}
	}
	return m
}

func (m *model) event(seq int64) posthorn.Event {
	body := fmt.Sprint("body ", seq)
	return posthorn.Event{Conv: "c", Seq: seq, Kind: posthorn.KindMsg, Mid: fmt.Sprint("mid-", seq), Sender: "bob", Cmid: fmt.Sprint("b-", seq), Body: &body}
}

func (m *model) prev(seq int64) int64 {
	i, _ := slices.BinarySearch(m.shown, seq)
	if i == 0 {
		return 0
	}
	return m.shown[i-1]
}

func (m *model) visible(start, upto int64) []int64 {
	out := []int64{}
	for _, seq := range m.shown {
		if seq > start && seq <= upto && !m.lost[seq] {
			out = append(out, seq)
		}
	}
	return out
}

// lose notes what a truncated page says is gone for good: everything below the floor that is not held yet.
func (m *model) lose(had int64, p *posthorn.Page) {
	if p.Truncated && p.Upto > had {
		for seq := had + 1; seq < m.floor; seq++ {
			m.lost[seq] = true
		}
	}
}

func (m *model) page(after int64, limit int) posthorn.Page {
	p := posthorn.Page{Conv: "c", Start: after, Upto: after, Head: m.head, Floor: m.floor, Epoch: 1}
	if after < m.floor-1 {
		p.Truncated, after = true, m.floor-1
		p.Upto = after
	}
	for seq := after + 1; seq <= m.head; seq++ {
		if !slices.Contains(m.shown, seq) {
			p.Skip = append(p.Skip, [2]int64{seq, seq})
		} else if len(p.Events) == limit {
			p.More = true
			break
		} else {
			p.Events = append(p.Events, m.event(seq))
		}
		p.Upto = seq
	}
	return p
}

// Goal: what is kept past a gap counts as soon as the gap is closed, and what lies below a start mark is not kept.
func TestO1_KeptPastAGap(t *testing.T) {
	s, err := openStore(t.TempDir()+"/store", true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	m := &model{head: 20}
	for seq := int64(1); seq <= m.head; seq++ {
		m.shown = append(m.shown, seq)
	}
	apply := func(beginning bool, fn func(*ledger) error) (fed []int64) {
		t.Helper()
		err := s.update(func(tx storeTx) error {
			l := newLedger(tx, identity{Epoch: 1, Install: 1}, beginning)
			if err := fn(l); err != nil {
				return err
			}
			fed = seqs(l.applied)
			return l.flush(nil)
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return fed
	}
	push := func(seq int64) func(*ledger) error {
		return func(l *ledger) error {
			ev := m.event(seq)
			return l.event(seq-1, &ev, eventRecord(seq-1, ev))
		}
	}
	for _, c := range []struct {
		seq int64
		fed []int64
	}{{2, nil}, {3, nil}, {5, nil}, {3, nil}, {1, []int64{1, 2, 3}}, {2, nil}, {4, []int64{4, 5}}} {
		if fed := apply(true, push(c.seq)); !slices.Equal(fed, c.fed) {
			t.Errorf("after %d: %v became part of the log, want %v", c.seq, fed, c.fed)
		}
	}

	_ = s.update(func(tx storeTx) error { return tx.forgetConv("c") }, nil)
	for _, seq := range []int64{4, 9, 16} {
		if fed := apply(false, push(seq)); len(fed) != 0 {
			t.Errorf("before the first page %v became part of the log", fed)
		}
	}
	p := m.page(10, 5)
	if fed := apply(false, func(l *ledger) error { return l.page(0, true, &p, rawEvents(&p, nil)) }); !slices.Equal(fed, []int64{11, 12, 13, 14, 15, 16}) {
		t.Errorf("the first page made %v part of the log", fed)
	}
	_ = s.view(func(tx storeTx) error {
		for _, seq := range []int64{4, 9} {
			if ev, err := tx.event("c", seq); ev != nil || err != nil {
				t.Errorf("%d lies below the start mark and is kept (%v)", seq, err)
			}
		}
		return nil
	})
}

// Goal: a page is the server's word on its stretch: what was kept there and is not in it, is gone.
func TestO1_PageOverKept(t *testing.T) {
	s, err := openStore(t.TempDir()+"/store", true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	m := &model{head: 9, shown: []int64{1, 2, 4, 9}}
	err = s.update(func(tx storeTx) error {
		l := newLedger(tx, identity{Epoch: 1, Install: 1}, true)
		for _, seq := range []int64{3, 4} {
			ev := m.event(seq)
			ev.Body = new(string)
			if err := l.event(seq-1, &ev, eventRecord(seq-1, ev)); err != nil {
				return err
			}
		}
		p := m.page(0, 3)
		if err := l.page(0, false, &p, rawEvents(&p, nil)); err != nil {
			return err
		}
		return l.flush(nil)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.view(func(tx storeTx) error {
		evs, err := tx.events("c", 0)
		if err != nil || !slices.Equal(seqs(evs), []int64{1, 2, 4}) || *evs[2].Body != "body 4" {
			t.Errorf("holds %v (%v), want 1, 2 and the page's 4", seqs(evs), err)
		}
		return nil
	})
}

// Goal: numbers close to 2^53 are confirmed as they came, and none beyond it is taken.
func TestB72_NumbersCloseToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		const top = posthorn.MaxSeq
		event := func(seq int64) posthorn.Event {
			body := fmt.Sprint(seq)
			return posthorn.Event{Conv: "far", Seq: seq, Kind: posthorn.KindMsg, Mid: "m" + body, Sender: "bob", Cmid: body, Body: &body}
		}
		f.locked(func() {
			f.on = func(s *fakeSocket, fr wire.Frame) bool {
				switch fr := fr.(type) {
				case *wire.Sub:
					s.subbed = true
					s.say(&wire.Subbed{RID: fr.RID, Convs: []posthorn.Entry{{Conv: "far", Kind: posthorn.Group, Head: top - 1, Epoch: 1}}})
				case *wire.Sync:
					s.say(&wire.Page{RID: fr.RID, Page: posthorn.Page{Conv: "far", Events: []posthorn.Event{event(top - 2), event(top - 1)},
						Upto: top - 1, Head: top - 1, Epoch: 1}})
				case *wire.Ack:
					f.acked = append(f.acked, *fr)
					s.say(&wire.Acked{RID: fr.RID, Conv: fr.Conv, Delivered: fr.Seq})
				default:
					return false
				}
				return true
			}
		})
		c := open(t, cfg)
		waitCursor(t, c, "far", top-1)
		pass(time.Second)
		f.each(&wire.Event{Prev: top - 1, Ev: event(top)})
		pass(time.Second)
		f.each(&wire.Event{Prev: top, Ev: event(top + 1)})
		f.each(&wire.Event{Prev: top, Ev: event(top + 2)})
		pass(time.Second)
		if got := f.acks("far"); !slices.Equal(got, []int64{top - 1, top}) {
			t.Errorf("acks %v, want %v", got, []int64{top - 1, top})
		}
		if got := seqs(held(t, c, "far")); !slices.Equal(got, []int64{top - 2, top - 1, top}) {
			t.Errorf("holds %v", got)
		}
		if cur, _, _ := c.Cursor("far"); cur.Seq != top || cur.Acked != top-1 {
			t.Errorf("cursor %+v", cur)
		}
		if c.State().Phase != Online {
			t.Errorf("state %+v", c.State())
		}
	})
}

func TestPlaceOf(t *testing.T) {
	for _, c := range []struct {
		have, prev, seq int64
		want            place
	}{
		{50, 60, 61, kept}, {54, 54, 55, applied}, {54, 40, 55, applied}, {54, 54, 60, applied}, // 55–59 are not for this user
		{54, 53, 54, ignored}, {54, 10, 11, ignored}, {0, 0, 1, applied}, {0, 0, 7, applied}, {0, 1, 2, kept},
	} {
		if got := placeOf(c.have, c.prev, c.seq); got != c.want {
			t.Errorf("placeOf(%d, %d, %d) = %d, want %d", c.have, c.prev, c.seq, got, c.want)
		}
	}
}
