package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// Goal: D2, D3, O1 and E1 together, under whatever happens.
// Method: seeded schedules of posts, sends, lost frames, cuts, restarts, rewinds and sweeps; acks are held against the
// store at every ack, and the two sides against each other at the end.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomFaults(t, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func randomFaults(t *testing.T, r *rand.Rand) {
	f := newFake()
	cfg := serveFake(t, f)
	convs := []string{"a", "b", "c"}
	for _, name := range convs {
		f.post(name, 1+r.IntN(20))
	}
	if r.IntN(2) == 0 {
		cfg.Start = Tail(1 + r.IntN(10))
	}
	var c *Client
	var live atomic.Pointer[Client]
	calm, luck := false, rand.New(rand.NewPCG(r.Uint64(), 1)) // the server's own, guarded by its lock
	f.locked(func() {
		f.pageCap = 1 + r.IntN(5)
		f.mute = func(fr wire.Frame) bool { return !calm && fr.Type() != "welcome" && luck.IntN(8) == 0 }
		f.on = func(s *fakeSocket, fr wire.Frame) bool {
			if a, ok := fr.(*wire.Ack); ok {
				if cur, _, err := live.Load().Cursor(a.Conv); err == nil && cur.Seq < a.Seq && cur.Epoch == f.epoch {
					t.Errorf("%s: acked %d, holds %d", a.Conv, a.Seq, cur.Seq)
				}
			}
			if !calm && ridOf(fr) != "" && luck.IntN(12) == 0 {
				s.say(&wire.Error{RID: ridOf(fr), Code: posthorn.CodeUnavailable, RetryMS: int64(luck.IntN(500))})
				return true
			}
			return !calm && luck.IntN(12) == 0
		}
	})
	start := func() {
		var err error
		if c, err = Open(context.Background(), cfg); err == nil {
			live.Store(c)
			err = c.Start(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	start()
	defer func() { _ = c.Close() }()
	sent := map[string]string{} // cmid → conversation
	for range 60 {
		conv := convs[r.IntN(len(convs))]
		switch r.IntN(10) {
		case 0, 1, 2:
			p := send(t, c, conv, fmt.Sprint("mine ", len(sent)))
			sent[p.Cmid] = conv
		case 3, 4, 5:
			f.post(conv, 1+r.IntN(6))
		case 6:
			f.cut()
		case 7:
			_ = c.Close()
			start()
		case 8:
			f.each(&wire.Hint{Conv: conv, Head: f.seqOf(conv), Why: "sweep"})
		default:
			if r.IntN(3) == 0 {
				f.rewind(conv, max(1, f.seqOf(conv)-int64(r.IntN(8))))
			}
		}
		pass(time.Duration(r.IntN(3000)) * time.Millisecond)
	}
	f.locked(func() { calm = true })
	for range 10 {
		pass(time.Minute)
		for _, conv := range convs {
			f.each(&wire.Hint{Conv: conv, Head: f.seqOf(conv), Why: "sweep"})
		}
	}
	pass(time.Minute)
	if n := len(c.Outbox()) + len(c.Failed()); n > 0 || c.State().Phase != Online {
		t.Errorf("state %+v, outbox %+v, failed %+v", c.State(), c.Outbox(), c.Failed())
	}
	count := map[string]int{}
	for _, conv := range convs {
		cur, _, _ := c.Cursor(conv)
		got, want := held(t, c, conv), f.log(conv)[cur.Start:]
		if fmt.Sprint(bodies(got)) != fmt.Sprint(bodies(want)) || cur.Seq != f.seqOf(conv) {
			t.Errorf("%s from %d to %d: holds %v, want %v", conv, cur.Start, cur.Seq, bodies(got), bodies(want))
		}
		for i := range got {
			if got[i].Seq != want[i].Seq || got[i].Mid != want[i].Mid {
				t.Errorf("%s: holds %d %s, want %d %s", conv, got[i].Seq, got[i].Mid, want[i].Seq, want[i].Mid)
			}
		}
		for _, ev := range f.log(conv) {
			if sent[ev.Cmid] == conv {
				count[ev.Cmid]++
			}
		}
		f.locked(func() {
			if d := f.convs[conv].delivered; d != cur.Seq {
				t.Errorf("%s: confirmed up to %d, holds %d", conv, d, cur.Seq)
			}
		})
	}
	for cmid, conv := range sent {
		if count[cmid] != 1 {
			t.Errorf("%s: %d events under %s, want 1", conv, count[cmid], cmid)
		}
	}
}
