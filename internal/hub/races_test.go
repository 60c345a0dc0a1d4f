package hub

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn"
)

// What is told here happens when views, the tail and memory overtake one another. The model finds such cases by chance; these
// are those worth naming.

// TestV1_PrevNamesAHoleInAChannel: whether the missing event is visible is not known, so prev must tell it.
func TestV1_PrevNamesAHoleInAChannel(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Channel, "ann", "bob")
		b := h.join("bob", 2)
		e2 := h.say("c", "ann")
		hidden := h.w.commit("c", posthorn.KindJoin, "ann", "cid")
		h.tail(hidden)
		h.sleep(time.Second)
		h.want(b, "hint c/2 gap") // nothing that is pushed would tell them
		h.wantLag(2, map[string]int64{"c": 2})
		h.tail(h.say("c", "ann"))
		h.want(b, "event c/4<2")
		h.tail(e2, h.say("c", "ann"))
		h.want(b, "event c/2<1", "event c/5<4")
	})
}

// TestD5_JoinGivenUp: the tail drops the join of somebody who is connected. Another device of theirs knows better, so both
// are served from then on.
func TestD5_JoinGivenUp(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann")
		a, b1 := h.join("ann", 1), h.join("bob", 2)
		h.w.commit("c", posthorn.KindJoin, "ann", "bob") // lost
		h.tail(h.say("c", "ann"))
		h.sleep(time.Second)
		h.want(a, "event c/3<2")
		h.want(b1)
		b2 := h.join("bob", 3)
		h.want(b1, "conv c/3", "hint c/3 gap")
		h.want(b2, "conv c/3")
		h.tail(h.say("c", "ann"))
		h.want(b1, "event c/4<3")
		h.want(b2, "event c/4<3")
	})
}

// TestD5_ViewsTellOfALoss: the tail drops the newest event, and nothing comes behind it. Whoever reads a view next makes
// the hub wait for it, and ask those whom it lacks to sync.
func TestD5_ViewsTellOfALoss(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		a := h.join("ann", 1)
		h.say("c", "ann") // lost
		b := h.join("bob", 2)
		if h.w.wakes != 1 {
			t.Errorf("the tail was woken %d times", h.w.wakes)
		}
		h.sleep(999 * time.Millisecond)
		h.want(a)
		h.sleep(time.Millisecond)
		h.want(a, "hint c/2 gap")
		h.want(b)
		if got := h.Heads()["c"]; got != 1 {
			t.Errorf("fanned out up to %d, want 1: the audit must find it", got)
		}
		h.tail(h.say("c", "ann"))
		h.want(a, "event c/3<2")
		h.want(b, "event c/3<2")
	})
}

// TestV1_HoleDuringASub: while the views are on their way, a wait expires; the hole may hold the leave of the one who subs.
func TestV1_HoleDuringASub(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		a, b := h.join("ann", 1), h.hello("bob", 2)
		activate := h.subbing(b)
		h.w.step(0) // bob is in
		synctest.Wait()
		leave := h.w.commit("c", posthorn.KindLeave, "ann", "bob")
		h.own(h.say("c", "ann"), a)
		h.w.gate(false)
		h.sleep(time.Second)
		h.want(a, "sent c/3<2")
		h.w.step(0)
		activate()
		h.want(b, "hint c/2 gap")
		h.tail(leave, h.say("c", "ann"))
		h.want(b, "event c/2<1")
		h.want(a, "event c/2<1", "event c/4<3")
	})
}

// TestSubReadsAgain: views that lack what another device of the user has been told are read again; if that does not help,
// the membership itself is.
func TestSubReadsAgain(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b1 := h.hello("bob", 2)
		early := h.subbing(h.hello("bob", 3))
		h.w.open("d", posthorn.Group, "bob")
		h.w.step(0) // knows c and d
		synctest.Wait()
		h.w.open("e", posthorn.Group, "ann", "bob")
		h.w.gate(false)
		h.sub(b1) // knows e too
		h.w.step(0)
		early()
		if h.w.loads != 3 {
			t.Errorf("%d loads, want 3", h.w.loads)
		}
		h.tail(h.say("e", "ann"))
		h.want(b1, "event e/2<1")

		// A leave that the hub never hears of, acked by the device that subs.
		h.w.commit("c", posthorn.KindLeave, "bob", "bob")
		h.w.ack(4, "c", 2)
		b4 := h.join("bob", 4)
		synctest.Wait()
		if got := h.w.loads; got != 3+maxTries+1 {
			t.Errorf("%d loads, want %d", got, 3+maxTries+1)
		}
		h.tail(h.say("c", "ann"), h.say("e", "ann"))
		h.sleep(time.Second)
		h.want(b1, "event e/3<2", "hint c/2 gap")
		h.want(b4, "event e/3<2", "hint c/2 gap")
	})
}

// TestSubGivesUp where every reading is overrun.
func TestSubGivesUp(t *testing.T) {
	inHouse(t, func(l *posthorn.Limits) { l.HubBuffer = 1 }, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		s := h.hello("ann", 1)
		h.w.gate(true)
		done := make(chan error, 1)
		go func() {
			_, err := h.Subscribe(h.t.Context(), s)
			done <- err
		}()
		for range maxTries {
			synctest.Wait()
			h.tail(h.say("c", "bob"), h.say("c", "bob"))
			h.w.step(0)
			h.w.step(0)
		}
		if err := <-done; posthorn.AsError(err).Code != posthorn.CodeUnavailable {
			t.Errorf("sub: %v", err)
		}
		h.Unregister(s)
		h.sleep(time.Second)
		if err := h.empty(); err != nil {
			t.Error(err)
		}
	})
}

// TestD5_RejoinWithACursor: a device that has a cursor of an earlier stay lags by what the conv frame tells.
func TestD5_RejoinWithACursor(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		h.w.ack(2, "c", 1)
		h.tail(h.w.commit("c", posthorn.KindLeave, "bob", "bob"))
		h.w.ack(2, "c", 2)
		b := h.join("bob", 2)
		join := h.w.commit("c", posthorn.KindJoin, "ann", "bob")
		lost := h.say("c", "ann")
		h.tail(join)
		h.want(b, "conv c/4", "event c/3<2")
		h.wantLag(2, map[string]int64{"c": 4})
		h.tail(lost)
		h.want(b, "event c/4<3")
		h.ack(b, "c", 4, true)
		h.wantLag(2, map[string]int64{})
	})
}

// stale answers as a standby that is behind would.
type stale struct {
	*world
	behind int
}

func (s *stale) LoadUsers(ctx context.Context, conv string, users []string) ([]posthorn.View, error) {
	views, err := s.world.LoadUsers(ctx, conv, users)
	if s.behind > 0 {
		s.behind--
		for i := range views {
			views[i].Head, views[i].Periods = 0, nil
		}
	}
	return views, err
}

// TestV1_StaleViewsAreReadAgain: a view that does not reach the join decides nothing.
func TestV1_StaleViewsAreReadAgain(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		s := &stale{world: h.w, behind: 2*loadRounds + 1}
		h.cfg.Loader = s
		b := h.join("bob", 2)
		h.tail(h.w.open("c", posthorn.Group, "ann", "bob"))
		h.want(b)
		h.sleep(time.Second)
		h.want(b, "conv c/1", "event c/1<0")
		if got := h.Stats().Reloads; got != 2 || s.behind != 0 {
			t.Errorf("%d reloads, %d answers behind", got, s.behind)
		}
	})
}

// TestV1_NotAMember: an event names somebody who is none. They are told nothing.
func TestV1_NotAMember(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		b := h.join("bob", 2)
		ev := h.w.open("c", posthorn.Group, "ann")
		ev.Users = []string{"ann", "bob"}
		h.tail(ev, h.say("c", "ann"))
		h.want(b)
		if len(h.convs) != 0 {
			t.Error("the conversation is followed")
		}
	})
}

// TestB1_DeliverAllocates next to nothing: a frame for each event, shared by all that get it.
func TestB1_DeliverAllocates(t *testing.T) {
	const groups, size = 16, 8
	h, sinks := crowd(t, groups, size)
	h.born = h.born.Add(-h.cfg.Limits.HoldGap)
	batch := make([]posthorn.Committed, groups)
	for g := range batch {
		batch[g].Event = posthorn.Event{Conv: sinksConv(g), Seq: 1, Kind: posthorn.KindMsg, Sender: sinks[g*size].viewer.User}
	}
	got := testing.AllocsPerRun(100, func() {
		for g := range batch {
			batch[g].Event.Seq++
		}
		h.Deliver(batch)
	})
	if got > groups+1 {
		t.Errorf("%v allocations for %d events to %d sockets, want one an event", got, groups, groups*size)
	}
	if n := slices.IndexFunc(sinks, func(s *sink) bool { return s.pushed != 101 }); n >= 0 {
		t.Errorf("socket %d got %d pushes", n, sinks[n].pushed)
	}
}

// TestV1_LeaveBehindAHole: who has left is remembered for what fills the hole, and no longer.
func TestV1_LeaveBehindAHole(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b := h.join("bob", 2)
		late := h.say("c", "ann")
		h.tail(h.w.commit("c", posthorn.KindLeave, "bob", "bob"), h.say("c", "ann"))
		h.sleep(time.Second)
		h.want(b, "event c/3<2")
		h.tail(late)
		h.want(b, "event c/2<1")
		if len(h.convs) != 0 {
			t.Error("the conversation is still followed")
		}
	})
}

// TestV1_LeaveFindsNoRoom: a leave is dropped while the member's view is on its way, so that view decides nothing.
func TestV1_LeaveFindsNoRoom(t *testing.T) {
	inHouse(t, func(l *posthorn.Limits) { l.HubBuffer = 2 }, func(h *house) {
		b := h.join("bob", 2)
		h.w.gate(true)
		h.tail(h.w.open("c", posthorn.Group, "ann", "bob"), h.say("c", "ann"))
		h.pass("c[bob]") // bob is in
		h.tail(h.w.commit("c", posthorn.KindLeave, "bob", "bob"))
		for _, name := range []string{"c[bob]", "c2", "c2"} {
			h.pass(name)
		}
		h.tail(h.say("c", "ann"))
		h.want(b)
		h.pass("c[bob]")
		h.pass("c[bob]")
		h.want(b, "conv c/3", "event c/1<0", "event c/2<1", "hint c/3 overflow")
		if len(h.convs) != 0 {
			t.Error("the conversation is still followed")
		}
	})
}

// TestJoinAndLeaveWhileLoading leave nothing behind.
func TestJoinAndLeaveWhileLoading(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		b := h.join("bob", 2)
		h.tail(h.w.open("c", posthorn.Group, "ann", "bob"), h.w.commit("c", posthorn.KindLeave, "bob", "bob"))
		h.want(b, "conv c/2", "event c/1<0", "event c/2<1")
		if len(h.convs) != 0 {
			t.Error("the conversation is still followed")
		}
	})
}
