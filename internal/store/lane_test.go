package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// hold locks a conversation as a stranger's long transaction would.
func hold(t *testing.T, url, conv string) (release func()) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	release = func() { _ = c.Close(context.WithoutCancel(t.Context())) }
	t.Cleanup(release)
	if _, err := c.Exec(t.Context(), "begin"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "select 1 from posthorn.conversations where conv_id = $1 for update", conv); err != nil {
		t.Fatal(err)
	}
	return release
}

// submit queues an op and gives the channel on which its outcome comes.
func submit(s *store.Store, op posthorn.Op) <-chan posthorn.Outcome {
	got := make(chan posthorn.Outcome, 1)
	op.Done = func(o posthorn.Outcome) { got <- o }
	s.Submit(&op)
	return got
}

// A stranger's lock holds up its own conversation only; what waits there keeps its order, membership changes included.
func TestLockedConversationHoldsUpNobodyElse(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo", "cy")
	s, _ := open(t, url)
	locked := group(t, s, "ana", "bo")
	o, err := s.OpenConversation(t.Context(), posthorn.Open{Creator: "ana", Device: 1, Cmid: "free", Kind: posthorn.Group})
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, url, locked)
	var waiting []<-chan posthorn.Outcome
	for i := range 5 {
		waiting = append(waiting, submit(s, msg(locked, "ana", fmt.Sprint("m", i), "x")))
	}
	waiting = append(waiting, submit(s, posthorn.Op{Kind: posthorn.KindJoin, Conv: locked, Sender: "ana", DeviceID: 1, Cmid: "j", Users: []string{"cy"}}),
		submit(s, msg(locked, "ana", "after", "x")))
	for i := range 20 {
		if out := do(t, s, msg(o.Conv, "ana", fmt.Sprint("free", i), "x")); out.Err != nil || out.Seq != int64(i)+2 {
			t.Fatalf("a send elsewhere: %+v", out)
		}
	}
	for _, w := range waiting {
		select {
		case out := <-w:
			t.Fatalf("answered while locked: %+v", out)
		default:
		}
	}
	release()
	for i, w := range waiting {
		if out := <-w; out.Err != nil || out.Seq != int64(i)+2 {
			t.Fatalf("%d: %+v", i, out)
		}
	}
	if out := do(t, s, msg(locked, "cy", "hello", "x")); out.Err != nil || out.Seq != 9 {
		t.Fatalf("back in the main lane: %+v", out)
	}
}

// Who waits longer than the limit is told UNAVAILABLE, and nothing of it is ever written.
func TestLockedTooLong(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana")
	s, _ := open(t, url, func(c *store.Config) { c.Limits.LaneDeadline = 300 * time.Millisecond })
	conv := group(t, s, "ana")
	release := hold(t, url, conv)
	a, b := submit(s, msg(conv, "ana", "a", "x")), submit(s, msg(conv, "ana", "b", "x"))
	for _, w := range []<-chan posthorn.Outcome{a, b} {
		if c := code(<-w); c != posthorn.CodeUnavailable {
			t.Fatalf("code %s", c)
		}
	}
	release()
	if out := do(t, s, msg(conv, "ana", "c", "x")); out.Err != nil || out.Seq != 2 {
		t.Fatalf("%+v", out)
	}
}

// A value that the database refuses fails its own op and none of its neighbours.
func TestDataErrorFailsOneOfABatch(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana")
	s, _ := open(t, url)
	conv := group(t, s, "ana")
	release := hold(t, url, conv) // so that all of them share a batch
	var outs []<-chan posthorn.Outcome
	for i := range 9 {
		body := "fine"
		if i == 4 {
			body = "bad \xff" // the decoder lets none of this through
		}
		outs = append(outs, submit(s, msg(conv, "ana", fmt.Sprint(i), body)))
	}
	release()
	seq := int64(1)
	for i, w := range outs {
		out := <-w
		if i == 4 {
			if c := code(out); c != posthorn.CodeBadFrame {
				t.Fatalf("the bad one: %+v", out)
			}
			continue
		}
		if seq++; out.Err != nil || out.Seq != seq {
			t.Fatalf("%d: %+v, want seq %d", i, out, seq)
		}
	}
}

// P1 under everything at once: senders, membership changes, duplicates, refusals and strangers' locks on few conversations.
func TestP1_NoHoleUnderChurn(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo", "cy")
	a, _ := open(t, url)
	b, _ := open(t, url)
	var convs []string
	for i := range 3 {
		o, err := a.OpenConversation(t.Context(), posthorn.Open{Creator: "ana", Device: 1, Cmid: fmt.Sprint("o", i), Kind: posthorn.Group, Members: []string{"bo"}})
		if err != nil {
			t.Fatal(err)
		}
		convs = append(convs, o.Conv)
	}
	var wg sync.WaitGroup
	for w, s := range []*store.Store{a, b, a, b} {
		wg.Go(func() {
			for i := range 60 {
				conv := convs[(w+i)%3]
				switch i % 6 {
				case 0:
					do(t, s, posthorn.Op{Kind: posthorn.KindJoin, Conv: conv, Sender: "ana", DeviceID: 1, Cmid: fmt.Sprint(w, "j", i), Users: []string{"cy"}})
				case 1:
					do(t, s, posthorn.Op{Kind: posthorn.KindLeave, Conv: conv, Sender: "ana", DeviceID: 1, Cmid: fmt.Sprint(w, "l", i), Users: []string{"cy"}})
				case 2:
					do(t, s, msg(conv, "cy", fmt.Sprint(w, "c", i), "may be refused"))
				default:
					do(t, s, msg(conv, "bo", fmt.Sprint("shared", i), "the same from every worker"))
				}
			}
		})
	}
	wg.Wait()
	for _, conv := range convs {
		n := pgtest.Query[int64](t, url, "select count(*) from posthorn.events where conv_id = $1", conv)
		if head := pgtest.Query[int64](t, url, "select posthorn.head($1)", conv); head != n {
			t.Errorf("head %d, %d events", head, n)
		}
		// Each membership event opens or closes one period, and nobody is in twice.
		bad := pgtest.Query[int64](t, url, `select count(*) from posthorn.memberships m join posthorn.memberships o using (conv_id, user_id)
			where m.conv_id = $1 and o.from_seq > m.from_seq and (m.to_seq is null or o.from_seq <= m.to_seq)`, conv)
		if bad != 0 {
			t.Errorf("%d overlapping periods", bad)
		}
	}
}

// P1: an error after the numbers were given, before COMMIT, takes none of them.
func TestP1_RollbackTakesNoSeq(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana")
	s, _ := open(t, url)
	conv := group(t, s, "ana")
	t.Cleanup(func() { _ = fault.Arm("") })
	for round := range int64(10) {
		if err := fault.Arm("send.before_commit:error:0:1"); err != nil {
			t.Fatal(err)
		}
		if out := do(t, s, msg(conv, "ana", fmt.Sprint("m", round), "x")); out.Err == nil {
			t.Fatalf("the fault did not show: %+v", out)
		}
		if out := do(t, s, msg(conv, "ana", fmt.Sprint("m", round), "x")); out.Err != nil || out.Dup || out.Seq != round+2 {
			t.Fatalf("round %d: %+v", round, out)
		}
	}
}

// A stranger's lock on one conversation holds up the acks of nobody else.
func TestLockedConversationHoldsUpNoOtherAck(t *testing.T) {
	url := pgtest.URL(t)
	s, _, locked := written(t, url, 2)
	o, err := s.OpenConversation(t.Context(), posthorn.Open{Creator: "ana", Device: 1, Cmid: "free", Kind: posthorn.Group, Members: []string{"bo"}})
	if err != nil {
		t.Fatal(err)
	}
	sess, _ := hello(t, s, nil, "")
	c := connect(t, url)
	for _, q := range []string{"begin", "select 1 from posthorn.conversations where conv_id = '" + locked + "' for update"} {
		if _, err := c.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	held, free := make(chan error, 1), make(chan error, 1)
	ack := func(conv string, done chan error) {
		s.SubmitAck(posthorn.Ack{Viewer: sess.Viewer, Conv: conv, Seq: 1, Done: func(_ int64, err error) { done <- err }})
	}
	ack(locked, held)
	ack(o.Conv, free)
	if err := <-free; err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil && posthorn.AsError(err).Code != posthorn.CodeUnavailable {
		t.Fatal(err)
	}
}

// V1: the same open again tells a creator who was removed what they may see, not what goes on since.
func TestV1_OpenAgainAfterLeaving(t *testing.T) {
	url := pgtest.URL(t)
	s, _, conv := written(t, url, 0)
	if o := do(t, s, posthorn.Op{Kind: posthorn.KindLeave, Conv: conv, Sender: "ana", DeviceID: 1, Cmid: "l", Users: []string{"ana"}}); o.Err != nil {
		t.Fatal(o.Err)
	}
	for _, cmid := range []string{"a", "b", "c"} {
		do(t, s, msg(conv, "bo", cmid, "x"))
	}
	o, err := s.OpenConversation(t.Context(), posthorn.Open{Creator: "ana", Device: 1, Cmid: t.Name(), Kind: posthorn.Group, Members: []string{"bo"}})
	if err != nil || !o.Dup || o.Head != 2 {
		t.Fatalf("%+v, %v", o, err)
	}
}
