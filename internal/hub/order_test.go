package hub

import (
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

// TestB08_HeldUntilItsTurn: an own batch that overtakes, by memory, another gateway's waits for it; the tail is woken at
// once; on every socket seqs rise, and `sent` stands in its place.
func TestB08_HeldUntilItsTurn(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		a, b := h.join("ann", 1), h.join("bob", 2)
		e2, e3, e4, e5 := h.say("c", "bob"), h.say("c", "ann"), h.say("c", "bob"), h.say("c", "ann")
		h.own(e5, a)
		h.own(e3, a)
		h.want(a)
		h.want(b)
		if h.w.wakes != 1 {
			t.Errorf("the tail was woken %d times, want once for one gap", h.w.wakes)
		}
		if got := h.Stats().Held; got != 2 {
			t.Errorf("%d events are held", got)
		}
		h.tail(e2)
		h.want(a, "event c/2<1", "sent c/3<2")
		h.tail(e4)
		h.want(a, "event c/4<3", "sent c/5<4")
		h.want(b, "event c/2<1", "event c/3<2", "event c/4<3", "event c/5<4")
	})
}

// TestO1_EachOnce: what is delivered twice, or late, is pushed once, and its op is answered even so.
func TestO1_EachOnce(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		e1 := h.w.open("c", posthorn.Group, "ann", "bob")
		a, b := h.join("ann", 1), h.join("bob", 2)
		e2, e3 := h.say("c", "bob"), h.say("c", "ann")
		h.tail(e1, e2, e3)
		h.tail(e1, e2, e3)
		h.own(e3, a) // its outcome was not known when the tail read it
		h.want(a, "event c/2<1", "event c/3<2", "sent c/3<2")
		h.want(b, "event c/2<1", "event c/3<2")
		e4, e5 := h.say("c", "bob"), h.say("c", "ann")
		h.tail(e5)
		h.own(e5, a)
		h.tail(e5)
		h.tail(e4)
		h.want(a, "event c/4<3", "sent c/5<4")
		h.want(b, "event c/4<3", "event c/5<4")
		if h.encoded != 4 {
			t.Errorf("%d frames were made for 4 events", h.encoded)
		}
	})
}

// TestO1_NothingLostByAnExpiry: when the wait for a missing event ends, what was held goes out with a prev that tells the
// gap; the missing one is pushed when it comes after all, and Heads asks for it until then.
func TestO1_NothingLostByAnExpiry(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		a, b := h.join("ann", 1), h.join("bob", 2)
		e2, e3, e4, e5, e6 := h.say("c", "bob"), h.say("c", "ann"), h.say("c", "bob"), h.say("c", "bob"), h.say("c", "ann")
		h.own(e3, a)
		h.sleep(600 * time.Millisecond)
		h.own(e6, a)
		h.sleep(399 * time.Millisecond)
		h.want(a)
		h.sleep(time.Millisecond)
		h.want(a, "sent c/3<2")
		h.want(b, "event c/3<2")
		h.sleep(598 * time.Millisecond)
		h.want(b)
		h.tail(e2)
		h.want(a, "event c/2<1")
		h.want(b, "event c/2<1")
		h.sleep(2 * time.Millisecond) // the wait behind the second gap has its own end
		h.want(a, "sent c/6<5")
		h.want(b, "event c/6<5")
		if got := h.Heads()["c"]; got != 3 {
			t.Errorf("fanned out up to %d without a hole, want 3", got)
		}
		h.tail(e5, e4)
		h.tail(e5, e4)
		h.want(a, "event c/5<4", "event c/4<3")
		h.want(b, "event c/5<4", "event c/4<3")
		if got := h.Heads()["c"]; got != 6 {
			t.Errorf("fanned out up to %d, want 6", got)
		}
		if got := h.Stats(); got.Expired != 2 || got.Held != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// TestV1_RemovalInAGap: the wait for a missing event ends, and the missing one removed somebody. They get nothing that
// lies behind it, and their removal when it comes.
func TestV1_RemovalInAGap(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob", "cid")
		a, b, c := h.join("ann", 1), h.join("bob", 2), h.join("cid", 3)
		leave := h.w.commit("c", posthorn.KindLeave, "ann", "bob")
		e3, e4 := h.say("c", "ann"), h.say("c", "cid")
		h.own(e3, a)
		h.w.gate(true) // the database is slow to tell
		h.sleep(2 * time.Second)
		h.want(a, "sent c/3<2")
		h.tail(e4)
		h.want(b)
		h.want(c)
		h.w.step(0)
		h.w.step(0)
		h.w.gate(false)
		h.want(a, "event c/4<3")
		h.want(b, "hint c/2 gap") // their newest lies in the hole, so no push will tell them of it
		h.want(c, "event c/3<2", "event c/4<3")
		h.tail(leave)
		h.want(b, "event c/2<1")
		h.want(c, "event c/2<1")
		h.tail(h.say("c", "ann"))
		h.want(b)
		if h.Wants("c", nil); len(h.convs["c"].members) != 2 {
			t.Errorf("%d members are followed, want 2", len(h.convs["c"].members))
		}
	})
}

// TestB1_GapsAreBounded, in number and in bytes: more is not held, but goes out early.
func TestB1_GapsAreBounded(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.cfg.BufferBytes = 3 * (256 + 1000)
		h.w.open("c", posthorn.Group, "ann", "bob")
		a := h.join("ann", 1)
		e2 := h.say("c", "bob")
		for range 4 {
			ev := h.say("c", "bob")
			ev.Data = make([]byte, 999)
			h.tail(ev)
		}
		// The same bound holds for those who wait for the periods between here and there.
		h.want(a, "event c/3<2", "event c/4<3", "event c/5<4", "hint c/6 overflow")
		h.cfg.Limits.HubBuffer = 1
		e7, e8, e9, e10 := h.say("c", "bob"), h.say("c", "bob"), h.say("c", "bob"), h.say("c", "bob")
		h.tail(e8)
		h.want(a)
		h.tail(e10)
		h.want(a, "event c/8<7")
		h.tail(e2) // holes are bounded too: the oldest is forgotten, the client knows it by prev
		h.want(a)
		h.tail(e7, e9)
		h.want(a, "event c/7<6", "event c/9<8", "event c/10<9")
		if got := h.Stats(); got.Held != 0 || got.Expired != 2 || got.Overflows != 1 {
			t.Errorf("%+v", got)
		}
	})
}
