package main

import (
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// The first conversation, frame by frame: send → sent → event → ack → acked.
func TestFirstConversation(t *testing.T) {
	n, ana, bo, conv := pair(t)
	ask[*wire.Subbed](ana, &wire.Sub{})
	sub := ask[*wire.Subbed](bo, &wire.Sub{})
	if len(sub.Convs) != 1 || sub.Convs[0].Head != 1 || sub.Convs[0].Role != posthorn.RoleMember || sub.Convs[0].Last == nil {
		t.Fatalf("bo's list: %+v", sub.Convs)
	}
	sent := ana.send(conv, "m1", "hello")
	if sent.Seq != 2 || sent.Prev != 1 || sent.Dup {
		t.Fatalf("sent: %+v", sent)
	}
	ev := frame[*wire.Event](bo, nil)
	if ev.Prev != 1 || ev.Ev.Seq != 2 || ev.Ev.Mid != sent.Mid || *ev.Ev.Body != "hello" || ev.Ev.Sender != "ana" || ev.Ev.At.UnixMilli() != sent.At {
		t.Fatalf("event: %+v", ev)
	}
	page := ask[*wire.Page](bo, &wire.Sync{Conv: conv})
	if len(page.Page.Events) != 2 || page.Page.Upto != 2 || page.Page.More {
		t.Fatalf("page: %+v", page.Page)
	}
	if a := ask[*wire.Acked](bo, &wire.Ack{Conv: conv, Seq: 2}); a.Delivered != 2 {
		t.Fatalf("acked: %+v", a)
	}
	if d := pgtest.Query[int64](t, n.url, "select delivered_seq from posthorn.device_cursors"); d != 2 {
		t.Fatalf("delivered_seq = %d", d)
	}
	again := ana.send(conv, "m1", "hello")
	if !again.Dup || again.Seq != 2 || again.Mid != sent.Mid {
		t.Fatalf("again: %+v", again)
	}
}

// A conversation that is opened while somebody is connected reaches them with its entry first, then its events.
func TestOpenReachesConnectedMembers(t *testing.T) {
	n := serve(t, pgtest.URL(t))
	ana, bo := n.connect(t, "ana", "phone"), n.connect(t, "bo", "phone")
	ask[*wire.Subbed](bo, &wire.Sub{})
	conv := ana.group("open", "bo")
	ana.send(conv, "m1", "hello")
	entry := frame[*wire.Conv](bo, nil)
	if entry.Entry.Conv != conv || entry.Entry.Role != posthorn.RoleMember {
		t.Fatalf("entry: %+v", entry)
	}
	for seq := int64(1); seq <= 2; seq++ {
		ev := frame[*wire.Event](bo, nil)
		if ev.Ev.Conv != conv || ev.Ev.Seq != seq || ev.Prev != seq-1 {
			t.Fatalf("event: %+v", ev)
		}
	}
}

// V1: who is removed sees the removal and nothing after it; who comes in sees nothing before.
func TestV1_MembershipDecidesWhatIsSeen(t *testing.T) {
	n, ana, bo, conv := pair(t)
	cy := n.connect(t, "cy", "phone")
	for _, p := range []*peer{ana, bo, cy} {
		ask[*wire.Subbed](p, &wire.Sub{})
	}
	ana.send(conv, "m1", "before cy")
	if s := ask[*wire.Sent](ana, &wire.Change{T: "add", Conv: conv, Cmid: "a1", Users: []string{"cy"}}); s.Seq != 3 {
		t.Fatalf("add: %+v", s)
	}
	ana.send(conv, "m2", "with cy")
	ask[*wire.Sent](ana, &wire.Change{T: "remove", Conv: conv, Cmid: "r1", Users: []string{"cy"}})
	ana.send(conv, "m3", "after cy")

	frame[*wire.Conv](cy, nil)
	for want := int64(3); want <= 5; want++ {
		ev := frame[*wire.Event](cy, nil)
		if ev.Ev.Seq != want || (want == 3 && ev.Prev != 0) {
			t.Fatalf("cy is pushed %+v, want seq %d", ev, want)
		}
	}
	page := ask[*wire.Page](cy, &wire.Sync{Conv: conv})
	if got := page.Page; len(got.Events) != 3 || got.Head != 5 || got.Upto != 5 || len(got.Skip) != 1 || got.Skip[0] != [2]int64{1, 2} {
		t.Fatalf("cy's page: %+v", got)
	}
	body := "x"
	cy.refused(&wire.Send{Conv: conv, Cmid: "m9", Body: &body}, posthorn.CodeNotMember)
	cy.refused(&wire.Sync{Conv: conv, After: 6}, posthorn.CodeCursorAhead)
	cy.refused(&wire.Ack{Conv: conv, Seq: 6}, posthorn.CodeCursorAhead)
	cy.refused(&wire.Members{Conv: conv}, posthorn.CodeNotMember)
	cy.refused(&wire.Sync{Conv: "c-nowhere"}, posthorn.CodeNotMember)
	// The left conversation stays in the list until the leave event is acked.
	if l := ask[*wire.Subbed](cy, &wire.Sub{}); len(l.Convs) != 1 || !l.Convs[0].Left {
		t.Fatalf("cy's list: %+v", l.Convs)
	}
	ask[*wire.Acked](cy, &wire.Ack{Conv: conv, Seq: 5})
	if l := ask[*wire.Subbed](cy, &wire.Sub{}); len(l.Convs) != 0 {
		t.Fatalf("cy's list after the ack: %+v", l.Convs)
	}
}

// D2 for membership: a retried leave, and a retried send of somebody who was removed in between, get the first answer.
func TestD2_RetryAfterLeaveIsADuplicate(t *testing.T) {
	_, ana, bo, conv := pair(t)
	sent := bo.send(conv, "m1", "I was here")
	leave := &wire.Change{T: "leave", Conv: conv, Cmid: "l1"}
	left := ask[*wire.Sent](bo, leave)
	for _, first := range []*wire.Sent{left, ask[*wire.Sent](bo, leave)} {
		if first.Seq != left.Seq || (first != left) != first.Dup {
			t.Fatalf("leave: %+v, first %+v", first, left)
		}
	}
	if again := bo.send(conv, "m1", "I was here"); !again.Dup || again.Seq != sent.Seq {
		t.Fatalf("send after leave: %+v", again)
	}
	body := "other"
	bo.refused(&wire.Send{Conv: conv, Cmid: "m1", Body: &body}, posthorn.CodeCmidReused)
	body = "new"
	bo.refused(&wire.Send{Conv: conv, Cmid: "m2", Body: &body}, posthorn.CodeNotMember)
	if s := ana.send(conv, "m1", "the same cmid of another sender"); s.Dup {
		t.Fatalf("%+v", s)
	}
}
