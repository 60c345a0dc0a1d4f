package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// shown is all that one device was ever shown: the events that were pushed, and every byte.
type shown struct {
	mu     sync.Mutex // guards what follows
	pushed []wire.Event
	raw    strings.Builder
}

func (s *shown) tap() tap {
	return tap{frame: func(d client.Direction, f wire.Frame, raw []byte) {
		if d != client.In {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raw.Write(raw)
		if ev, ok := f.(*wire.Event); ok {
			s.pushed = append(s.pushed, *ev)
		}
	}}
}

func (n *node) watched(t *testing.T, user, device string) (*peer, *shown) {
	t.Helper()
	s := &shown{}
	p := n.connectWith(t, user, device, client.DialOptions{Tracer: s.tap()})
	ask[*wire.Subbed](p, &wire.Sub{})
	return p, s
}

// never fails where one of the bodies was shown, in whatever frame.
func (s *shown) never(t *testing.T, bodies []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bodies {
		if strings.Contains(s.raw.String(), b) {
			t.Errorf("%q was shown", b)
		}
	}
}

// walk syncs from 0 to the end and wants every seq named once, as an event or as skipped; it gives the events' seqs.
func walk(p *peer, conv string, limit int) (seqs []int64, head int64) {
	p.t.Helper()
	at := int64(0)
	for more := true; more; {
		page := ask[*wire.Page](p, &wire.Sync{Conv: conv, After: at, Limit: limit}).Page
		named := map[int64]bool{}
		for _, ev := range page.Events {
			seqs, named[ev.Seq] = append(seqs, ev.Seq), true
		}
		for _, s := range page.Skip {
			for seq := s[0]; seq <= s[1]; seq++ {
				if named[seq] {
					p.t.Fatalf("%d is named twice: %+v", seq, page)
				}
				named[seq] = true
			}
		}
		if int64(len(named)) != page.Upto-at || page.Upto > page.Head || page.More && page.Upto == at {
			p.t.Fatalf("from %d to %d of %d, %d are named: %+v", at, page.Upto, page.Head, len(named), page)
		}
		at, head, more = page.Upto, page.Head, page.More
	}
	if at != head || !slices.IsSorted(seqs) {
		p.t.Fatalf("ended at %d of %d with %v", at, head, seqs)
	}
	return seqs, head
}

// hiddenBody is what a message says that one member must not see. The marks at its ends keep 2 from being found in 21.
func hiddenBody(conv string, i int) string { return fmt.Sprintf("<%s/%d>", conv, i) }

// A member sees their periods, both boundary events included, and nothing else, whichever way they ask.
func TestB13_TheExactVisibleSet(t *testing.T) {
	n := serve(t, pgtest.URL(t))
	n.token(t, "cy", "phone")
	ana := n.connect(t, "ana", "phone")
	bo, sees := n.watched(t, "bo", "phone")
	conv := ana.group("open", "cy")
	head, mids, hidden := int64(1), map[int64]string{}, []string{}
	fill := func(upto int64, seen bool) {
		for head < upto {
			head++
			body := hiddenBody("exact", int(head))
			s := ana.send(conv, fmt.Sprint("m", head), body)
			if mids[s.Seq] = s.Mid; s.Seq != head {
				t.Fatalf("sent %+v, want %d", s, head)
			}
			if !seen {
				hidden = append(hidden, body)
			}
		}
	}
	change := func(p *peer, kind string, users ...string) {
		head++
		if s := ask[*wire.Sent](p, &wire.Change{T: kind, Conv: conv, Cmid: fmt.Sprint(kind, head), Users: users}); s.Seq != head {
			t.Fatalf("%s: %+v, want %d", kind, s, head)
		}
	}
	fill(9, false)
	change(ana, "add", "bo") // 10
	fill(19, true)
	change(ana, "remove", "bo") // 20
	fill(29, false)
	change(ana, "add", "bo") // 30
	fill(34, true)
	if s := bo.send(conv, "own", "mine"); s.Seq != 35 {
		t.Fatalf("%+v", s)
	}
	head = 35
	fill(39, true)
	change(bo, "leave") // 40
	fill(44, false)
	change(ana, "add", "bo")    // 45
	change(ana, "remove", "bo") // 46, in the same second
	fill(50, false)

	var want []int64
	for _, p := range [][2]int64{{10, 20}, {30, 40}, {45, 46}} {
		for seq := p[0]; seq <= p[1]; seq++ {
			want = append(want, seq)
		}
	}
	frame(bo, func(ev *wire.Event) bool { return ev.Ev.Seq == 46 })
	var pushed, pushes []int64
	for _, seq := range want {
		if seq != 35 && seq != 40 { // its own, told by sent
			pushes = append(pushes, seq)
		}
	}
	sees.mu.Lock()
	for _, ev := range sees.pushed {
		pushed = append(pushed, ev.Ev.Seq)
	}
	sees.mu.Unlock()
	if !slices.Equal(pushed, pushes) {
		t.Errorf("pushed %v, want %v", pushed, pushes)
	}
	check := func(t *testing.T, p *peer) {
		defer func(outer *testing.T) { p.t = outer }(p.t)
		p.t = t
		for _, limit := range []int{1, 7, 500} { // pages that end within a period, at its edge, and span several
			if got, head := walk(p, conv, limit); !slices.Equal(got, want) || head != 46 {
				t.Errorf("limit %d: head %d, %v", limit, head, got)
			}
		}
		var back []int64
		for before := int64(0); ; {
			page := ask[*wire.Page](p, &wire.History{Conv: conv, Before: before, Limit: 8}).Page
			for _, ev := range page.Events {
				back = append(back, ev.Seq)
				before = ev.Seq
			}
			if !page.More {
				break
			}
		}
		if slices.Reverse(back); !slices.Equal(back, want) {
			t.Errorf("history: %v", back)
		}
		entry := ask[*wire.Subbed](p, &wire.Sub{}).Convs[0]
		if entry.Conv != conv || entry.Head != 46 || !entry.Left || entry.Last == nil || entry.Last.Seq != 46 {
			t.Errorf("entry: %+v", entry)
		}
		if c := ask[*wire.Confirmed](p, &wire.Confirm{Conv: conv, Pairs: []posthorn.Pair{{Seq: 25, Mid: mids[25]}}}); c.Seq != 0 {
			t.Errorf("confirms what it may not see: %+v", c)
		}
		if s := p.send(conv, "own", "mine"); !s.Dup || s.Seq != 35 {
			t.Errorf("the first answer again: %+v", s)
		}
		body := "late"
		p.refused(&wire.Send{Conv: conv, Cmid: "late", Body: &body}, posthorn.CodeNotMember)
		p.refused(&wire.Sync{Conv: conv, After: 47}, posthorn.CodeCursorAhead)
		p.refused(&wire.Ack{Conv: conv, Seq: 47}, posthorn.CodeCursorAhead)
	}
	t.Run("the device that was there", func(t *testing.T) { check(t, bo) })
	tablet, tabletSees := n.watched(t, "bo", "tablet")
	t.Run("a device that comes later", func(t *testing.T) { check(t, tablet) })
	if a := ask[*wire.Acked](bo, &wire.Ack{Conv: conv, Seq: 46}); a.Delivered != 46 {
		t.Errorf("%+v", a)
	}
	for _, s := range []*shown{sees, tabletSees} {
		s.never(t, hidden)
		if !strings.Contains(s.raw.String(), hiddenBody("exact", 15)) {
			t.Error("a visible body was not shown, or is not found this way")
		}
	}
}
