package store_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// line is one event of the model's log, and who may see it.
type line struct {
	seq   int64
	kind  posthorn.Kind
	users []string
	sees  map[string]bool
}

// modelLog says who sees what by the words of the protocol: from the join to the leave, both included, and what lay
// before where history is "all"; in a channel the comings and goings of others are hidden from plain members.
type modelLog struct {
	conv    posthorn.ConvKind
	history string
	lines   []line
	in      map[string]bool
}

func (m *modelLog) add(kind posthorn.Kind, users ...string) {
	l := line{seq: int64(len(m.lines)) + 1, kind: kind, users: users, sees: map[string]bool{}}
	if kind == posthorn.KindJoin || kind == posthorn.KindOpen {
		for _, u := range users {
			m.in[u] = true
		}
	}
	for u := range m.in {
		if m.in[u] {
			l.sees[u] = true
		}
	}
	m.lines = append(m.lines, l)
	for _, u := range users {
		switch {
		case kind == posthorn.KindLeave:
			m.in[u] = false
		case m.history == "all":
			for _, x := range m.lines {
				x.sees[u] = true
			}
		}
	}
}

func (m *modelLog) visible(user string) (seqs []int64) {
	for _, l := range m.lines {
		hidden := m.conv == posthorn.Channel && (l.kind == posthorn.KindJoin || l.kind == posthorn.KindLeave) && !slices.Contains(l.users, user)
		if l.sees[user] && !hidden {
			seqs = append(seqs, l.seq)
		}
	}
	return seqs
}

// V1, O1: pages in both directions, the list and the hub's views show exactly what the model says, whatever the order of
// joins, leaves and messages, and whatever the size of the pages.
func TestV1_PagesShowWhatThePeriodsSay(t *testing.T) {
	url := pgtest.URL(t)
	members := []string{"ana", "bo", "cy"}
	people(t, url, members...)
	s, _ := open(t, url)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := &modelLog{conv: rapid.SampledFrom([]posthorn.ConvKind{posthorn.Group, posthorn.Channel}).Draw(rt, "kind"),
			history: rapid.SampledFrom([]string{"joined", "all"}).Draw(rt, "history"), in: map[string]bool{}}
		o, err := s.OpenConversation(t.Context(), posthorn.Open{Cmid: fmt.Sprint(run), Kind: m.conv, History: m.history, Members: []string{"ana"}, AsServer: true})
		if err != nil {
			rt.Fatal(err)
		}
		m.add(posthorn.KindOpen, "ana")
		steps := rapid.SliceOfN(rapid.SampledFrom(append([]string{"", "", ""}, members...)), 1, 14).Draw(rt, "steps")
		for i, who := range steps {
			op := posthorn.Op{Kind: posthorn.KindMsg, Conv: o.Conv, AsServer: true, Cmid: fmt.Sprint(i)}
			switch {
			case who == "":
				body := "x"
				op.Body = &body
			case m.in[who]:
				op.Kind, op.Users = posthorn.KindLeave, []string{who}
			default:
				op.Kind, op.Users = posthorn.KindJoin, []string{who}
			}
			if out := do(t, s, op); out.Err != nil || out.Seq != int64(len(m.lines))+1 {
				rt.Fatalf("step %d: %+v", i, out)
			}
			m.add(op.Kind, op.Users...)
		}
		limit := rapid.IntRange(1, 5).Draw(rt, "limit")
		for _, u := range members {
			checkViewer(rt, t, s, m, o.Conv, u, limit)
		}
	})
}

func checkViewer(rt *rapid.T, t *testing.T, s *store.Store, m *modelLog, conv, user string, limit int) {
	v, want := posthorn.Viewer{User: user}, m.visible(user)
	if len(want) == 0 {
		if _, err := s.Page(t.Context(), v, posthorn.PageQuery{Conv: conv}); posthorn.AsError(err).Code != posthorn.CodeNotMember {
			rt.Fatalf("%s never was in: %v", user, err)
		}
		return
	}
	head := want[len(want)-1]
	// Forwards: events and skips cover 1..head without a hole or an overlap.
	var got []int64
	for at, more := int64(0), true; more; {
		p, err := s.Page(t.Context(), v, posthorn.PageQuery{Conv: conv, After: at, Limit: limit})
		if err != nil || p.Head != head || len(p.Events) > limit || (p.More && p.Upto <= at) || p.Upto > head {
			rt.Fatalf("%s after %d: %+v %v", user, at, p, err)
		}
		covered := map[int64]int{}
		for _, e := range p.Events {
			got = append(got, e.Seq)
			covered[e.Seq]++
		}
		for _, sk := range p.Skip {
			for q := sk[0]; q <= sk[1]; q++ {
				covered[q]++
			}
		}
		for q := at + 1; q <= p.Upto; q++ {
			if covered[q] != 1 {
				rt.Fatalf("%s: %d is covered %d times by %+v", user, q, covered[q], p)
			}
		}
		if int64(len(covered)) != p.Upto-at {
			rt.Fatalf("%s: the page from %d speaks of more than its stretch: %+v", user, at, p)
		}
		at, more = p.Upto, p.More
		if !more && at != head {
			rt.Fatalf("%s ends at %d, head %d", user, at, head)
		}
	}
	if !slices.Equal(got, want) {
		rt.Fatalf("%s is shown %v, want %v", user, got, want)
	}
	// Backwards, the same in the other order.
	var back []int64
	for before, more := int64(0), true; more; {
		p, err := s.Page(t.Context(), v, posthorn.PageQuery{Conv: conv, History: true, Before: before, Limit: limit})
		if err != nil {
			rt.Fatal(err)
		}
		for _, e := range p.Events {
			back = append(back, e.Seq)
		}
		before, more = p.Upto, p.More
	}
	slices.Reverse(back)
	if !slices.Equal(back, want) {
		rt.Fatalf("%s is shown %v backwards, want %v", user, back, want)
	}
	if _, err := s.Page(t.Context(), v, posthorn.PageQuery{Conv: conv, After: head + 1}); posthorn.AsError(err).Code != posthorn.CodeCursorAhead {
		rt.Fatalf("%s past the head: %v", user, err)
	}
	views, err := s.LoadUsers(t.Context(), conv, []string{user})
	if err != nil || len(views) != 1 || views[0].Visible != head || views[0].Periods.Present() != m.in[user] {
		rt.Fatalf("%s: %+v %v", user, views, err)
	}
	checkEntry(rt, t, s, m, conv, user, want)
}

// checkEntry: the list shows who is in, with the visible head, its event, and the messages among what is visible.
func checkEntry(rt *rapid.T, t *testing.T, s *store.Store, m *modelLog, conv, user string, want []int64) {
	e, err := s.Entry(t.Context(), posthorn.Viewer{User: user}, conv)
	if !m.in[user] {
		if posthorn.AsError(err).Code != posthorn.CodeNotMember {
			rt.Fatalf("%s has left: %+v %v", user, e, err)
		}
		return
	}
	unread := int64(0)
	for _, seq := range want {
		if m.lines[seq-1].kind == posthorn.KindMsg {
			unread++
		}
	}
	head := want[len(want)-1]
	if err != nil || e.Head != head || e.Last == nil || e.Last.Seq != head || e.Unread != unread {
		rt.Fatalf("%s: %+v, want head %d and %d unread; %v", user, e, head, unread, err)
	}
}
