package client

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// repost is somebody else's own device offering again what the rewind lost.
func (f *fake) repost(conv, sender, cmid, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.conv(conv)
	ev := f.append(c, posthorn.Event{Kind: posthorn.KindMsg, Sender: sender, Cmid: cmid, Body: &body})
	f.pushTo(c, ev.Seq, nil)
}

func bodies(evs []posthorn.Event) []string {
	var out []string
	for _, ev := range evs {
		if ev.Body != nil {
			out = append(out, *ev.Body)
		}
	}
	return out
}

// Goal: after a rewind the device ends with the server's history, and what it had sent is in it again.
// Method: bob writes 1–10, ann's messages follow, one of them recalled; a restore cuts the log back to 11, between them.
// Replies to lost messages wait for these, get their new numbers, or fail after a day.
func TestE1_RewoundHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 10)
		f.post("quiet", 5)
		c := open(t, cfg)
		waitCursor(t, c, "room", 10)
		say := func(body string, reply int64) *Pending {
			p, err := c.Send(t.Context(), "room", Message{Body: body, ReplyTo: reply})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return p
		}
		kept := say("kept", 0)           // 11
		lost := say("lost", 0)           // 12
		f.post("room", 2)                // 13, 14: bob's, lost
		reply := say("to ann", 12)       // 15
		toBob := say("to bob", 13)       // 16
		toGone := say("to bob gone", 14) // 17
		recalled := say("recalled", 0)   // 18
		f.locked(func() {
			room := f.convs["room"]
			ev := f.append(room, posthorn.Event{Kind: posthorn.KindRecall, Sender: "ann", Cmid: "recall", Target: 18})
			f.pushTo(room, ev.Seq, nil)
		})
		bob13 := f.log("room")[12].Cmid
		waitCursor(t, c, "room", 19)
		pass(time.Second)
		for _, p := range []*Pending{kept, lost, reply, toBob, toGone, recalled} {
			if _, err := result(t, p); err != nil {
				t.Fatal(err)
			}
		}

		f.locked(func() { f.seen, f.acked = nil, nil })
		feed := c.Subscribe(1000)
		f.rewind("room", 11)
		f.post("room", 1)  // 12: somebody was faster than us
		f.post("quiet", 2) // nothing was lost there, and nothing of ours will show the gap
		pass(time.Minute)

		if c.State().Epoch != 1001 || c.State().Phase != Online {
			t.Fatalf("state %+v", c.State())
		}
		cur, _, _ := c.Cursor("room")
		if cur.Epoch != 1001 || cur.Install != 1 {
			t.Errorf("cursor %+v, want epoch 1001 of the same install", cur)
		}
		if acks := f.acks("room"); acks[0] != 11 {
			t.Errorf("acks %v, want first the common past, 11", acks)
		}
		if acks := f.acks("quiet"); len(acks) == 0 || acks[0] != 5 {
			t.Errorf("acks %v in the conversation that lost nothing, want 5", acks)
		}
		sameLog(t, c, f, "room")
		sameLog(t, c, f, "quiet")
		if got := bodies(f.log("room")[10:]); !slices.Equal(got, []string{"kept", "room 12", "lost", "to ann"}) {
			t.Errorf("the log ends with %v", got)
		}
		var again []string
		for _, x := range sentFrames[*wire.Send](f) {
			again = append(again, x.Cmid)
		}
		if !slices.Equal(again, []string{lost.Cmid, reply.Cmid}) {
			t.Errorf("offered again: %v, want %v", again, []string{lost.Cmid, reply.Cmid})
		}
		if x := sentFrames[*wire.Send](f)[1]; x.ReplyTo != 13 {
			t.Errorf("the reply names %d, want the new number 13", x.ReplyTo)
		}
		reset := 0
		for len(feed.C()) > 0 {
			if ch := <-feed.C(); ch.Kind == ChangeReset && ch.Conv == "room" {
				reset++
			}
		}
		if reset != 1 {
			t.Errorf("the feed told %d resets, want 1", reset)
		}
		if n := len(c.Outbox()); n != 2 || c.Outbox()[0].State != ItemWaiting {
			t.Errorf("outbox %+v, want the two replies to bob waiting", c.Outbox())
		}

		// What waits survives a restart; bob's device brings one of the two back.
		_ = c.Close()
		c = open(t, cfg)
		pass(time.Second)
		f.repost("room", "bob", bob13, "bob's again") // 15
		pass(time.Second)
		if got := sentFrames[*wire.Send](f); len(got) != 3 || got[2].Cmid != toBob.Cmid || got[2].ReplyTo != 15 {
			t.Errorf("sends %+v, want the reply to bob with 15", got)
		}
		pass(25 * time.Hour)
		failed := c.Failed()
		if len(failed) != 1 || failed[0].Cmid != toGone.Cmid || failed[0].Err.Code != posthorn.CodeNotFound || len(c.Outbox()) != 0 {
			t.Errorf("failed %+v, outbox %+v, want the reply to what never came back", failed, c.Outbox())
		}
		sameLog(t, c, f, "room")

		// The same history again: nothing to heal, nothing offered twice.
		f.locked(func() { f.seen = nil })
		f.cut()
		pass(time.Minute)
		if n := len(sentFrames[*wire.Confirm](f)) + len(sentFrames[*wire.Send](f)); n != 0 {
			t.Errorf("%d confirms and sends at the next connection", n)
		}
	})
}

// Goal: an item that never left, and names a lost message, is not sent with a number that now means another.
func TestE1_QueuedReplyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 5)
		c := open(t, cfg)
		waitCursor(t, c, "room", 5)
		bob5 := f.log("room")[4].Cmid
		f.locked(func() { f.on = func(_ *fakeSocket, fr wire.Frame) bool { return fr.Type() == "send" } })
		p, _ := c.Send(t.Context(), "room", Message{Body: "reply", ReplyTo: 5})
		q, _ := c.Send(t.Context(), "room", Message{Body: "unknown", ReplyTo: 99})
		r := send(t, c, "room", "plain")
		synctest.Wait()
		f.rewind("room", 4)
		f.post("room", 1)
		f.locked(func() { f.on = nil })
		pass(time.Minute)
		if _, err := result(t, r); err != nil {
			t.Error(err)
		}
		var e *posthorn.Error
		if _, err := result(t, q); !errors.As(err, &e) || e.Code != posthorn.CodeNotFound {
			t.Errorf("the reply to nothing: %v", err)
		}
		f.repost("room", "bob", bob5, "bob's fifth")
		pass(time.Second)
		if s, err := result(t, p); err != nil || s.Seq != 8 || f.log("room")[7].ReplyTo != 7 {
			t.Errorf("the reply: %+v %v names %d", s, err, f.log("room")[7].ReplyTo)
		}
		sameLog(t, c, f, "room")
	})
}

// Goal: a conversation that the new history does not know leaves the device, and what was sent there fails in sight.
func TestE1_ConversationGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 3)
		c := open(t, cfg)
		waitCursor(t, c, "room", 3)
		p := send(t, c, "room", "hello")
		if _, err := result(t, p); err != nil {
			t.Fatal(err)
		}
		f.rewind("room", 0)
		f.locked(func() { delete(f.convs, "room") })
		pass(time.Minute)
		if _, known, _ := c.Cursor("room"); known || len(held(t, c, "room")) != 0 {
			t.Error("the conversation is still held")
		}
		if failed := c.Failed(); len(failed) != 1 || failed[0].Cmid != p.Cmid || failed[0].Err.Code != posthorn.CodeNotMember {
			t.Errorf("failed %+v", failed)
		}
	})
}

// Goal: an undetected rewind within one epoch shows as CURSOR_AHEAD and heals the same way, without a storm.
func TestE1_CursorAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 300)
		c := open(t, cfg)
		waitCursor(t, c, "room", 300)
		pass(time.Second)
		f.locked(func() {
			room := f.convs["room"]
			room.events, room.delivered = room.events[:120], 0
			f.seen = nil
		})
		f.each(&wire.Hint{Conv: "room", Head: 120, Why: "sweep"})
		pass(time.Minute)
		sameLog(t, c, f, "room")
		if n := len(sentFrames[*wire.Confirm](f)); n == 0 || n > 4 {
			t.Errorf("%d confirms for 180 lost events, want 1–4", n)
		}
		if acks := f.acks("room"); acks[len(acks)-1] != 120 {
			t.Errorf("acks %v, want 120 last", acks)
		}

		// A server that contradicts itself is asked with patience.
		f.locked(func() {
			f.seen = nil
			f.on = func(s *fakeSocket, fr wire.Frame) bool {
				if x, ok := fr.(*wire.Sync); ok {
					s.refuse(x.RID, posthorn.CodeCursorAhead, "seq=120 head=1")
					return true
				}
				return false
			}
		})
		f.each(&wire.Hint{Conv: "room", Head: 120, Why: "sweep"})
		pass(time.Minute)
		if n := len(sentFrames[*wire.Sync](f)); n > 20 {
			t.Errorf("%d syncs in a minute", n)
		}
		f.locked(func() { f.on = nil })
		pass(time.Minute)
		sameLog(t, c, f, "room")
	})
}

// Goal: an entry that is older than what the device holds is looked into, and takes nothing away: what was applied before,
// and what is pushed while the question is under way, is applied once. Method: more is
// pushed just before the answer.
func TestE1_OnlyQuickerThanAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 50)
		c := open(t, cfg)
		waitCursor(t, c, "room", 50)
		pass(time.Second)
		feed := c.Subscribe(1000)
		defer feed.Close()
		f.locked(func() {
			f.seen = nil
			f.on = func(s *fakeSocket, fr wire.Frame) bool {
				if _, ok := fr.(*wire.Confirm); ok {
					f.say("room", 5)
				}
				return false
			}
		})
		f.each(&wire.Conv{Entry: posthorn.Entry{Conv: "room", Kind: posthorn.Group, Head: 40, Epoch: f.epoch}})
		pass(time.Minute)
		waitCursor(t, c, "room", 55)
		sameLog(t, c, f, "room")
		next := int64(51)
		for {
			var ch Change
			select {
			case ch = <-feed.C():
			default:
				if next != 56 {
					t.Fatalf("applied up to %d", next-1)
				}
				if n := len(sentFrames[*wire.Confirm](f)); n != 1 {
					t.Errorf("%d confirms", n)
				}
				return
			}
			switch {
			case ch.Kind == ChangeReset:
				t.Fatal("the log was cut back")
			case ch.Kind == ChangeEvent && ch.Event.Seq != next:
				t.Fatalf("applied %d, want %d", ch.Event.Seq, next)
			case ch.Kind == ChangeEvent:
				next++
			}
		}
	})
}

// Goal: the start mark is lowered to a head that fell below it, and what comes then is held.
func TestE1_HeadBelowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		cfg.Start = Tail(5)
		f.post("room", 50)
		c := open(t, cfg)
		waitCursor(t, c, "room", 50)
		f.rewind("room", 30)
		pass(time.Minute)
		cur, _, _ := c.Cursor("room")
		if cur.Seq != 30 || cur.Start != 30 {
			t.Errorf("cursor %+v, want 30 from 30", cur)
		}
		f.post("room", 3)
		pass(time.Second)
		if got := seqs(held(t, c, "room")); !slices.Equal(got, []int64{31, 32, 33}) {
			t.Errorf("holds %v", got)
		}
	})
}

// Goal: what came of a conversation before its first page did is no part of a history that was rewound since.
func TestE1_KeptBeforeTheFirstPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		cfg.Start = Tail(2)
		f.post("room", 3)
		f.locked(func() { f.on = func(_ *fakeSocket, fr wire.Frame) bool { return fr.Type() == "sync" } }) // held
		c := open(t, cfg)
		pass(time.Second)
		f.post("room", 2) // kept
		pass(time.Second)
		f.rewind("room", 3)
		f.post("room", 2)
		f.locked(func() { f.on, f.pageCap = nil, 1 })
		pass(time.Minute)
		got, want := held(t, c, "room"), f.log("room")[3:]
		if len(got) != 2 || got[0].Mid != want[0].Mid || got[1].Mid != want[1].Mid {
			t.Errorf("holds %+v, want %+v", got, want)
		}
	})
}

// Goal: the common past is found exactly, in few questions, whatever the log looks like.
func TestE1_Probe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5000).Draw(t, "events")
		sparse := rapid.Int64Range(1, 50).Draw(t, "sparse")
		floor := rapid.Int64Range(0, 1000).Draw(t, "floor")
		var log []posthorn.Pair
		seq := floor
		for i := range n {
			seq += 1 + int64(i*7919)%sparse
			log = append(log, posthorn.Pair{Seq: seq, Mid: fmt.Sprint("m", seq)})
		}
		shared := rapid.IntRange(0, n).Draw(t, "shared")
		var want posthorn.Pair
		if shared > 0 {
			want = log[shared-1]
		}
		p := &probe{high: seq + 1 + rapid.Int64Range(0, 100).Draw(t, "skips"), floor: floor}
		rounds := 0
		for ; ; rounds++ {
			wanted := p.wanted()
			if !slices.IsSorted(wanted) || len(wanted) > 64 {
				t.Fatalf("asks for %v", wanted)
			}
			p.asked = nil
			var held posthorn.Pair
			for _, w := range wanted {
				i, _ := slices.BinarySearchFunc(log, w, func(a posthorn.Pair, w int64) int { return int(a.Seq - w) })
				if i == n || log[i].Seq >= p.high {
					break
				}
				if k := len(p.asked); k > 0 && p.asked[k-1].Seq >= log[i].Seq {
					continue
				}
				p.asked = append(p.asked, log[i])
				if i < shared {
					held = log[i]
				}
			}
			if len(p.asked) == 0 {
				break
			}
			if !p.narrow(held) {
				t.Fatalf("%v was not asked for", held)
			}
		}
		if p.low != want || rounds > 6 {
			t.Fatalf("found %v after %d questions, want %v", p.low, rounds, want)
		}
	})
}
