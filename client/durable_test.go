package client

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
	"github.com/posthorn/posthorn/wire"
)

// Goal: what a device has confirmed, it holds; wherever it dies.
// Method: a real process with fsync halts at each fault point, at its first pass and at later ones, while somebody writes
// and while it catches up. Its acks, as the server saw them, are held against the file that it left; then it lives again
// and must end with every event once.
func TestD3_AckNeverAheadOfStore(t *testing.T) {
	for _, p := range []fault.Point{fault.ClientBeforeStore, fault.ClientAfterStore, fault.ClientBeforeAck} {
		for _, skip := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s after %d", p, skip), func(t *testing.T) {
				f := newFake()
				url, path := listen(t, f), t.TempDir()+"/store"
				f.post("room", 10)
				f.locked(func() {
					f.pageCap = 4
					f.on = func(s *fakeSocket, fr wire.Frame) bool {
						if _, ok := fr.(*wire.Ack); ok { // one more for each ack, so that the next point is reached
							f.serve(s, fr)
							room := f.convs["room"]
							ev := f.append(room, room.events[0])
							f.pushTo(room, ev.Seq, nil)
							return true
						}
						return false
					}
				})
				startChild(t, url, path, fmt.Sprintf("%s:halt:%d", p, skip)).halted(t)
				f.until(t, "the connection's end", func() bool { return len(f.conns) == 0 })

				acks := append(f.acks("room"), 0)
				inspect(t, path, "room", func(tx storeTx, rec cursor) {
					if rec.Seq < slices.Max(acks) {
						t.Errorf("acked %v, but the cursor on disk is %d", acks, rec.Seq)
					}
					for seq := int64(1); seq <= slices.Max(acks); seq++ {
						if ev, err := tx.event("room", seq); ev == nil || err != nil {
							t.Errorf("acked %v, but %d is not on disk (%v)", acks, seq, err)
						}
					}
					if p == fault.ClientBeforeStore && skip == 0 && rec.Seq != 0 {
						t.Errorf("halted before the first store, and yet the cursor is %d", rec.Seq)
					}
					if p == fault.ClientAfterStore && rec.Seq == 0 {
						t.Error("halted after a store, and nothing is on disk")
					}
				})

				f.locked(func() { f.on = nil })
				f.post("room", 3)
				c := open(t, helperConfig(url, path))
				waitCursor(t, c, "room", f.seqOf("room"))
				f.until(t, "the last ack", func() bool { return f.convs["room"].delivered == f.convs["room"].head() })
				sameLog(t, c, f, "room")
			})
		}
	}
}

// Goal: a store that fails confirms nothing.
// Method: the fault point fails the burst, and loses one; the server asks again and everything comes.
func TestD3_FailedStoreConfirmsNothing(t *testing.T) {
	for _, faults := range []string{"client.before_store:error:0:2", "client.before_store:drop:0:2", "client.after_store:error:0:1", "client.before_ack:drop:0:1"} {
		t.Run(faults, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				cfg := serveFake(t, f)
				f.post("room", 5)
				if err := fault.Arm(faults); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = fault.Arm("") })
				c := open(t, cfg)
				synctest.Wait()
				if acks := f.acks("room"); len(acks) > 0 {
					t.Errorf("acked %v", acks)
				}
				pass(time.Minute)
				f.each(&wire.Hint{Conv: "room", Head: 5, Why: "sweep"})
				pass(time.Second)
				sameLog(t, c, f, "room")
				if acks := f.acks("room"); len(acks) == 0 || slices.Max(acks) != 5 {
					t.Errorf("acked %v, want 5 in the end", acks)
				}
			})
		})
	}
}

// Goal: acks are few, late by no more than AckAfter, and never of more than is held.
func TestAcksAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 1)
		c := open(t, cfg)
		waitCursor(t, c, "room", 1)
		pass(time.Second)
		for i, want := range []struct {
			post int
			now  []int64 // acks at once
			then []int64 // after AckAfter
		}{
			{1, nil, []int64{2}}, {3, nil, []int64{5}}, {4, []int64{9}, nil}, {6, []int64{15}, nil},
		} {
			f.locked(func() { f.acked = nil })
			f.locked(func() { f.quiet = true })
			from := f.seqOf("room")
			f.post("room", want.post)
			f.locked(func() { // in one burst or in several, as it comes
				f.quiet = false
				room := f.convs["room"]
				for seq := from + 1; seq <= room.head(); seq++ {
					f.pushTo(room, seq, nil)
				}
			})
			synctest.Wait()
			if got := f.acks("room"); i < 2 && len(got) != 0 || i >= 2 && len(got) == 0 {
				t.Errorf("%d events: acks %v at once, want %v", want.post, got, want.now)
			}
			pass(199 * time.Millisecond)
			if got := f.acks("room"); i < 2 && len(got) != 0 {
				t.Errorf("%d events: acks %v before AckAfter", want.post, got)
			}
			pass(2 * time.Millisecond)
			got := f.acks("room")
			if len(got) == 0 || got[len(got)-1] != f.seqOf("room") || len(got) > 2 {
				t.Errorf("%d events: acks %v, want %v", want.post, got, append(want.now, want.then...))
			}
		}
		// A hint with nothing new: the ack was lost, so it is said again.
		f.locked(func() { f.acked = nil })
		f.each(&wire.Hint{Conv: "room", Head: 99, Why: "sweep"})
		pass(time.Second)
		if got := f.acks("room"); !slices.Equal(got, []int64{15}) {
			t.Errorf("after a hint with an empty page: acks %v, want 15 again", got)
		}
		cur, _, _ := c.Cursor("room")
		if cur.Seq != 15 {
			t.Errorf("the hint's head moved the cursor to %d", cur.Seq)
		}
	})
}

// Goal: a lost ack is repaired at the next connection, where the list tells that the server holds less.
func TestLostAckAtReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 3)
		lose := true
		f.locked(func() {
			f.on = func(_ *fakeSocket, fr wire.Frame) bool {
				_, ok := fr.(*wire.Ack)
				return ok && lose
			}
		})
		open(t, cfg)
		pass(time.Second)
		f.locked(func() { lose = false })
		f.cut()
		pass(time.Minute)
		if got := f.acks("room"); !slices.Equal(got, []int64{3}) {
			t.Errorf("acks %v, want 3", got)
		}
		if n := len(sentFrames[*wire.Sync](f)); n != 1 {
			t.Errorf("%d syncs, want one: nothing was missing", n)
		}
	})
}

// Goal: a sync that is refused for the moment comes back when the server said, whatever is pushed meanwhile.
func TestSyncIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 3)
		f.locked(func() {
			f.on = func(s *fakeSocket, fr wire.Frame) bool {
				if x, ok := fr.(*wire.Sync); ok {
					s.say(&wire.Error{RID: x.RID, Code: posthorn.CodeRateLimited, RetryMS: 3000})
					return true
				}
				return false
			}
		})
		c := open(t, cfg)
		for range 5 {
			pass(500 * time.Millisecond)
			f.post("room", 1)
		}
		if n := len(sentFrames[*wire.Sync](f)); n != 1 {
			t.Errorf("%d syncs within 3 s, want 1", n)
		}
		f.locked(func() { f.on = nil })
		pass(2 * time.Second)
		sameLog(t, c, f, "room")
	})
}

// Goal: every conversation is synced, those beyond the list's first page too, at the first connection and at the next.
func TestEveryConversationIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		const n = 130
		for i := range n {
			f.post(fmt.Sprintf("c%03d", i), 2)
		}
		c := open(t, cfg)
		pass(time.Minute)
		f.locked(func() { f.quiet = true })
		for i := range n {
			f.post(fmt.Sprintf("c%03d", i), 1)
		}
		f.cut()
		pass(time.Minute)
		for i := range n {
			sameLog(t, c, f, fmt.Sprintf("c%03d", i))
		}
		all, err := c.Conversations()
		if err != nil || len(all) != n {
			t.Fatal(len(all), err)
		}
		for _, x := range all {
			if x.Head != 3 || !x.Held || x.Local.Seq != 3 {
				t.Fatalf("%+v", x)
			}
		}
	})
}

// Goal: a device new to a conversation begins where it was told, and keeps that over restarts.
func TestStartPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		cfg.Start = Tail(4)
		f.post("old", 20)
		f.post("short", 2)
		c := open(t, cfg)
		pass(time.Second)
		f.post("old", 2)
		f.post("new", 3) // its first event is pushed before any list names it
		pass(time.Second)
		for conv, want := range map[string][]int64{"old": {17, 18, 19, 20, 21, 22}, "short": {1, 2}, "new": {1, 2, 3}} {
			if got := seqs(held(t, c, conv)); !slices.Equal(got, want) {
				t.Errorf("%s: holds %v, want %v", conv, got, want)
			}
		}
		cur, _, _ := c.Cursor("old")
		if cur.Start != 16 || cur.Seq != 22 {
			t.Errorf("cursor %+v, want 22 from 16", cur)
		}
		p, err := c.History(t.Context(), "old", cur.Start+1, 5)
		if err != nil || !slices.Equal(seqs(p.Events), []int64{16, 15, 14, 13, 12}) {
			t.Errorf("history: %v %v", seqs(p.Events), err)
		}
		if after, _, _ := c.Cursor("old"); after.Seq != cur.Seq || len(held(t, c, "old")) != 6 {
			t.Errorf("history moved the cursor to %d", after.Seq)
		}
		_ = c.Close()
		f.post("old", 1)
		f.locked(func() { f.seen = nil })
		c = open(t, cfg)
		pass(time.Second)
		if syncs := sentFrames[*wire.Sync](f); len(syncs) != 1 || syncs[0].Tail != 0 || syncs[0].After != 22 {
			t.Errorf("after a restart: syncs %+v, want one after 22", syncs)
		}
		if m, next, err := c.Members(t.Context(), "old", "", 10); err != nil || next != "" || len(m) != 1 {
			t.Errorf("members: %v %q %v", m, next, err)
		}
	})
}
