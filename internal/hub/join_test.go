package hub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn"
)

// TestV1_B13_EdgesOfPeriods is the hub's share of B13: join at 3, removed at 5, back at 7, gone at 8. Exactly the union of
// the stays is pushed, joins and leaves included; each stay begins with a conv frame.
func TestV1_B13_EdgesOfPeriods(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "cid")
		a, b := h.join("ann", 1), h.join("bob", 2)
		h.tail(h.say("c", "ann"))                                // 2
		h.tail(h.w.commit("c", posthorn.KindJoin, "ann", "bob")) // 3
		h.want(b, "conv c/3", "event c/3<0")
		h.tail(h.say("c", "ann"))                                 // 4
		h.tail(h.w.commit("c", posthorn.KindLeave, "ann", "bob")) // 5
		h.tail(h.say("c", "ann"))                                 // 6
		h.want(b, "event c/4<3", "event c/5<4")
		h.tail(h.w.commit("c", posthorn.KindJoin, "ann", "bob")) // 7
		h.want(b, "conv c/7", "event c/7<5")
		h.tail(h.w.commit("c", posthorn.KindLeave, "bob", "bob"), h.say("c", "ann"))
		h.want(b, "event c/8<7")
		h.want(a, "event c/2<1", "event c/3<2", "event c/4<3", "event c/5<4", "event c/6<5", "event c/7<6", "event c/8<7", "event c/9<8")
		if got := len(h.convs["c"].members); got != 1 {
			t.Errorf("%d members are followed, want 1", got)
		}
	})
}

// TestV1_B17_RemovedMemberHearsNothing is the hub's share of B17: the removal comes by the tail, sends by memory in the
// same moment, and one socket has not yet been activated.
func TestV1_B17_RemovedMemberHearsNothing(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		a, b1, b2 := h.join("ann", 1), h.join("bob", 2), h.hello("bob", 3)
		activate, err := h.Subscribe(h.t.Context(), b2)
		if err != nil {
			t.Fatal(err)
		}
		h.own(h.say("c", "ann"), a)
		leave := h.w.commit("c", posthorn.KindLeave, "ann", "bob")
		for range 20 {
			h.own(h.say("c", "ann"), a)
		}
		h.tail(leave)
		activate()
		h.want(b1, "event c/2<1", "event c/3<2")
		h.want(b2, "event c/2<1", "event c/3<2")
		if got := len(a.take()); got != 22 {
			t.Errorf("the sender was told %d times", got)
		}
	})
}

// TestV1_ChannelHidesWhoComesAndGoes: membership events of a channel reach those concerned and admins only, and prev
// skips what is hidden.
func TestV1_ChannelHidesWhoComesAndGoes(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Channel, "ann", "bob")
		a, b, c := h.join("ann", 1), h.join("bob", 2), h.join("cid", 3)
		h.own(h.say("c", "ann"), a)                                // 2
		h.tail(h.w.commit("c", posthorn.KindJoin, "ann", "cid"))   // 3
		synctest.Wait()                                            //
		h.own(h.w.commit("c", posthorn.KindJoin, "ann", "dan"), a) // 4
		h.own(h.say("c", "ann"), a)                                // 5
		h.tail(h.w.commit("c", posthorn.KindLeave, "cid", "cid"))  // 6
		h.own(h.say("c", "ann"), a)                                // 7
		h.want(a, "sent c/2<1", "event c/3<2", "sent c/4<3", "sent c/5<4", "event c/6<5", "sent c/7<6")
		h.want(b, "event c/2<1", "event c/5<2", "event c/7<5")
		h.want(c, "conv c/3", "event c/3<0", "event c/5<3", "event c/6<5")
	})
}

// TestJoinWhileTheDatabaseIsAway: the load is tried again until it succeeds; then comes the conv frame and all that waited.
func TestJoinWhileTheDatabaseIsAway(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann")
		b1, b2 := h.join("bob", 2), h.join("bob", 3)
		h.w.away(true)
		h.tail(h.w.commit("c", posthorn.KindJoin, "ann", "bob"))
		h.own(h.say("c", "bob"), b1)
		h.sleep(time.Minute)
		h.tail(h.say("c", "ann"))
		h.want(b1)
		before := h.Stats().Reloads
		h.w.away(false)
		h.sleep(lastBackOff)
		if got := h.Stats().Reloads; got != before || got < 15 || got > 25 {
			t.Errorf("%d reloads in a minute", got)
		}
		h.want(b1, "conv c/4", "event c/2<0", "sent c/3<2", "event c/4<3")
		h.want(b2, "conv c/4", "event c/2<0", "event c/3<2", "event c/4<3")
	})
}

// TestJoinOvertaken: a message overtakes, by memory, the event that brought its readers in. It waits for it, the answer too.
func TestJoinOvertaken(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		a, b := h.join("ann", 1), h.join("bob", 2)
		open := h.w.open("c", posthorn.Group, "ann", "bob")
		h.own(h.say("c", "ann"), a)
		h.want(a)
		h.tail(open)
		h.want(a, "conv c/2", "event c/1<0", "sent c/2<1")
		h.want(b, "conv c/2", "event c/1<0", "event c/2<1")
		// Where nobody turns up, the answer is given after HoldGap. Over HTTP nothing is waited for.
		h.w.open("d", posthorn.Group, "ann", "bob")
		h.own(h.say("d", "ann"), a)
		http := h.hello("cid", 3)
		h.own(h.say("d", "cid"), http)
		h.want(http, "sent d/3<2")
		h.sleep(999 * time.Millisecond)
		h.want(a)
		h.sleep(time.Millisecond)
		h.want(a, "sent d/2<1")
		if got := h.Stats().Recent; got != 0 {
			t.Errorf("%d events are still remembered", got)
		}
	})
}

// TestJoinSubscribesMeanwhile: a second device of the user subs while they come into a conversation. Its views were read
// before, so they are read again.
func TestJoinSubscribesMeanwhile(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		b1, b2 := h.join("bob", 2), h.hello("bob", 3)
		activate := h.subbing(b2)
		h.w.step(0) // its snapshot knows nothing of c
		synctest.Wait()
		h.tail(h.w.open("c", posthorn.Group, "ann", "bob")) // LoadUsers waits at its gate
		for range 3 {                                       // the views return, are read again, return
			synctest.Wait()
			h.w.step(0)
		}
		activate()
		h.w.gate(false)
		h.tail(h.say("c", "ann"))
		h.want(b1)
		for h.w.step(0) {
			synctest.Wait()
		}
		h.want(b1, "conv c/2", "event c/1<0", "event c/2<1")
		h.want(b2, "conv c/2", "event c/2<1")
	})
}

// TestB1_JoinsBufferIsBounded: what finds no room while a view is read is told by a hint behind the rest.
func TestB1_JoinsBufferIsBounded(t *testing.T) {
	inHouse(t, func(l *posthorn.Limits) { l.HubBuffer = 3 }, func(h *house) {
		b := h.join("bob", 2)
		h.w.gate(true)
		h.tail(h.w.open("c", posthorn.Group, "ann", "bob"))
		for range 3 {
			h.own(h.say("c", "bob"), b)
		}
		h.own(h.say("c", "bob"), b)
		h.want(b, "sent c/4<3", "sent c/5<4")
		h.w.gate(false)
		for h.w.step(0) {
			synctest.Wait()
		}
		h.want(b, "conv c/5", "event c/1<0", "sent c/2<1", "sent c/3<2", "hint c/5 overflow")
		h.tail(h.say("c", "ann"))
		h.want(b, "event c/6<5")
	})
}

// TestB1_ConvFrameFindsNoRoom: it comes before the next event that does.
func TestB1_ConvFrameFindsNoRoom(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		b := h.join("bob", 2)
		b.full.Store(true)
		h.tail(h.w.open("c", posthorn.Group, "ann", "bob"))
		h.want(b, "hint c/1 overflow", "hint c/1 overflow")
		h.tail(h.say("c", "ann"))
		h.want(b, "hint c/2 overflow")
		b.full.Store(false)
		h.tail(h.say("c", "ann"), h.say("c", "ann"))
		h.want(b, "conv c/1", "event c/3<2", "event c/4<3")
	})
}

// TestB1_MemoryReturns: with the last socket nothing is left, whatever was under way.
func TestB1_MemoryReturns(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		h.w.open("d", posthorn.Group, "ann", "bob")
		a, b := h.join("ann", 1), h.join("bob", 2)
		h.say("c", "ann")
		h.own(h.say("c", "ann"), a) // held
		h.w.gate(true)
		h.tail(h.w.open("e", posthorn.Group, "ann", "bob")) // loads
		h.own(h.say("e", "ann"), a)
		h.w.open("f", posthorn.Group, "ann")
		h.own(h.say("f", "ann"), a) // waits for its reader
		h.tail(h.say("d", "bob"))   // lags
		h.Unregister(b)
		h.Unregister(a)
		if got := len(a.take()); got != 3 {
			t.Errorf("%d frames, want a push and two answers", got)
		}
		h.w.gate(false)
		for h.w.step(0) {
			synctest.Wait()
		}
		h.sleep(time.Second)
		if err := h.empty(); err != nil {
			t.Error(err)
		}
		if got := a.take(); len(got) != 1 {
			t.Errorf("the last answer is %q", got)
		}
	})
}
