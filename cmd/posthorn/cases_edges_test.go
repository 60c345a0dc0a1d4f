package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// What is sent beside a change of membership falls on one side of it, and on that side for everybody: the log decides, and
// no push or page of either gateway shows more or less.
func TestB13_SendsBesideTheChange(t *testing.T) {
	here := serve(t, pgtest.URL(t))
	there := serve(t, here.url)
	ana, cy := here.connect(t, "ana", "phone"), there.connect(t, "cy", "phone")
	phone, onPhone := here.watched(t, "bo", "phone")
	tablet, onTablet := there.watched(t, "bo", "tablet")
	conv := ana.group("open", "cy")

	const beside = 3
	owed, changes := 0, []string{"add", "remove"}
	for round := range 2 * rounds(20, 200) {
		kind := changes[round%2]
		body := make([]string, beside)
		for i := range beside {
			body[i] = hiddenBody("beside", round*beside+i)
			if err := cy.Write(&wire.Send{RID: fmt.Sprint(i), Conv: conv, Cmid: fmt.Sprint("m", round, "-", i), Body: &body[i]}); err != nil {
				t.Fatal(err)
			}
			if i == round%beside { // before, between and after
				if err := ana.Write(&wire.Change{T: kind, RID: "change", Conv: conv, Cmid: fmt.Sprint(kind, round), Users: []string{"bo"}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range beside {
			frame[*wire.Sent](cy, nil)
		}
		for owed++; owed > 0 && round%8 != 6; owed-- { // else the next change, a removal, follows at once
			frame[*wire.Sent](ana, nil)
		}
	}
	ask[*wire.Sent](ana, &wire.Change{T: "add", Conv: conv, Cmid: "last", Users: []string{"bo"}})
	last := cy.send(conv, "last", "the end").Seq
	for _, p := range []*peer{phone, tablet} {
		frame(p, func(ev *wire.Event) bool { return ev.Ev.Seq == last })
	}

	// The truth, as somebody sees it who was there all the time.
	var want []int64
	var hidden []string
	in := false
	for at := int64(0); at < last; {
		page := ask[*wire.Page](ana, &wire.Sync{Conv: conv, After: at, Limit: 500}).Page
		for _, ev := range page.Events {
			concerns := slices.Contains(ev.Users, "bo")
			if in || concerns {
				want = append(want, ev.Seq)
			} else if ev.Body != nil {
				hidden = append(hidden, *ev.Body)
			}
			if concerns {
				in = ev.Kind == posthorn.KindJoin
			}
		}
		at = page.Upto
	}
	if len(hidden) == 0 || len(want) == 0 {
		t.Fatalf("%d hidden, %d visible: nothing was tried", len(hidden), len(want))
	}
	prev := map[int64]int64{}
	for i, seq := range want[1:] {
		prev[seq] = want[i]
	}
	for name, d := range map[string]struct {
		*peer
		*shown
	}{"phone": {phone, onPhone}, "tablet": {tablet, onTablet}} {
		if got, _ := walk(d.peer, conv, 50); !slices.Equal(got, want) {
			t.Errorf("%s: a walk shows\n%v, want\n%v", name, got, want)
		}
		d.shown.mu.Lock()
		for _, ev := range d.pushed {
			if p, ok := prev[ev.Ev.Seq]; ev.Ev.Seq != want[0] && (!ok || p != ev.Prev) {
				t.Errorf("%s was pushed %d with prev %d, want %d (visible: %v)", name, ev.Ev.Seq, ev.Prev, p, ok)
			}
		}
		if len(d.pushed) < len(want)/2 {
			t.Errorf("%s was pushed %d of %d", name, len(d.pushed), len(want))
		}
		d.shown.mu.Unlock()
		d.never(t, hidden)
	}
}
