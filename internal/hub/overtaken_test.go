package hub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn"
)

// Here acks, own messages and views overtake the tail, and subs overtake one another.

// TestD5_AckDuringASub: what a device acks while its views are read counts, although the views do not know of it.
func TestD5_AckDuringASub(t *testing.T) {
	for _, live := range []bool{false, true} {
		inHouse(t, nil, func(h *house) {
			h.w.open("c", posthorn.Group, "ann", "bob")
			b := h.hello("bob", 2)
			if live {
				h.sub(b)
				h.w.ack(2, "c", 0)
			}
			h.tail(h.say("c", "ann"))
			activate := h.subbing(b)
			h.w.step(0)
			synctest.Wait()
			h.ack(b, "c", 2, true)
			h.tail(h.say("c", "ann"))
			h.w.step(0)
			activate()
			h.wantLag(2, map[string]int64{"c": 3})
			h.ack(b, "c", 3, true)
			h.wantLag(2, map[string]int64{})
		})
	}
}

// TestD5_AckWithoutACursorDuringASub: the first ack ever comes while the views are read. From then on there is a cursor.
func TestD5_AckWithoutACursorDuringASub(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b := h.join("bob", 2)
		h.tail(h.say("c", "ann"))
		activate := h.subbing(b)
		h.w.step(0)
		synctest.Wait()
		h.ack(b, "c", 1, true)
		h.w.step(0)
		activate()
		h.wantLag(2, map[string]int64{"c": 2})
	})
}

// TestD5_AckWhileAJoinLoads: the device has synced and acked what still waits for its view. It does not lag.
func TestD5_AckWhileAJoinLoads(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		b := h.join("bob", 2)
		h.w.gate(true)
		h.tail(h.w.open("c", posthorn.Group, "ann", "bob"), h.say("c", "ann"))
		h.ack(b, "c", 2, true)
		h.pass("c[bob]")
		h.pass("c[bob]")
		h.pass("c2")
		h.pass("c2")
		h.want(b, "conv c/2", "event c/1<0", "event c/2<1")
		h.wantLag(2, map[string]int64{})
	})
}

// TestD5_LateEventIsNoLag where the device has acked beyond it.
func TestD5_LateEventIsNoLag(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b := h.join("bob", 2)
		late := h.say("c", "ann")
		h.tail(h.say("c", "ann"))
		h.sleep(time.Second)
		h.ack(b, "c", 3, true) // it has synced
		h.tail(late)
		h.want(b, "event c/3<2", "event c/2<1")
		h.wantLag(2, map[string]int64{})
	})
}

// TestB19_SendDuringASub: the answer to a send keeps its place, although the sender is not known yet.
func TestB19_SendDuringASub(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob", "cid")
		h.join("cid", 3) // so that the conversation is followed
		b := h.hello("bob", 2)
		activate := h.subbing(b)
		h.pass("2")
		h.tail(h.say("c", "ann"))
		h.own(h.say("c", "bob"), b)
		h.tail(h.say("c", "ann"))
		h.pass("2")
		h.want(b)
		activate()
		h.want(b, "event c/2<1", "sent c/3<2", "event c/4<3")
	})
}

// TestO1_PassedBeforeAnybodyCared: an own message was handed out before the hub knew of any reader. It is missed by a hint;
// and a device that subs meanwhile, and knows it from its views, holds up nobody.
func TestO1_PassedBeforeAnybodyCared(t *testing.T) {
	for _, then := range []string{"sub", "send", "wait"} {
		inHouse(t, nil, func(h *house) {
			b := h.join("bob", 2)
			open := h.w.open("c", posthorn.Group, "ann", "bob")
			h.own(h.say("c", "ann"), h.hello("ann", 1))
			h.sleep(time.Second)
			h.tail(open) // the tail is late indeed
			h.want(b, "conv c/2", "event c/1<0")
			switch then {
			case "sub":
				h.sub(b)
				h.tail(h.say("c", "ann"))
				h.want(b, "event c/3<2")
			case "send":
				h.tail(h.say("c", "ann"))
				h.want(b)
				h.sleep(time.Second)
				h.want(b, "event c/3<2")
			case "wait":
				h.sleep(time.Second)
				h.want(b, "hint c/2 gap")
				h.wantLag(2, map[string]int64{"c": 2})
			}
		})
	}
}

// TestO1_FreedAndFollowedAgain: the conversation was followed for a moment only, and what was fanned out then is still
// needed when the join of somebody else comes.
func TestO1_FreedAndFollowedAgain(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		a, b := h.join("ann", 1), h.join("bob", 2)
		open := h.w.open("c", posthorn.Group, "ann")
		h.tail(h.w.commit("c", posthorn.KindJoin, "ann", "bob"), h.say("c", "ann"))
		h.Unregister(b)
		h.tail(open)
		h.want(a, "conv c/3", "event c/1<0", "event c/2<1", "event c/3<2")
	})
}

// TestO1_OverlookedAndFollowedAgain: the same where the conversation was followed from a view on that was quicker than the
// tail, so that the join came late.
func TestO1_OverlookedAndFollowedAgain(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		c, a, b := h.join("cid", 3), h.hello("ann", 1), h.hello("bob", 2)
		old := h.subbing(b)
		h.pass("2") // head 1
		join := h.w.commit("c", posthorn.KindJoin, "ann", "cid")
		quick := h.subbing(a)
		h.pass("1") // head 2
		h.pass("1")
		quick()
		h.tail(join)
		h.Unregister(a)
		h.Unregister(c)
		h.pass("2")
		old()
		h.tail(h.say("c", "ann"))
		h.want(b, "event c/2<1", "event c/3<2")
		h.want(c)
	})
}

// TestO1_OlderViewsOfAnotherDevice: two devices of a user sub, and the one with the older views is done later, or while the
// user has left again. It is not left without what lies between.
func TestO1_OlderViewsOfAnotherDevice(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		inHouse(t, nil, func(h *house) {
			h.w.open("c", posthorn.Group, "ann", "bob")
			b2, b3 := h.hello("bob", 2), h.hello("bob", 3)
			old := h.subbing(b2)
			h.pass("2") // head 1
			quick := h.subbing(b3)
			h.tail(h.say("c", "ann"))
			h.pass("3") // head 2
			if leaves {
				h.tail(h.w.commit("c", posthorn.KindLeave, "bob", "bob"))
			}
			h.pass("3")
			h.pass("2")
			h.pass("2") // read again
			h.pass("2")
			quick()
			old()
			h.tail(h.say("c", "ann"))
			if leaves {
				h.want(b3, "event c/3<2")
				h.want(b2) // its second views hold the leave
				return
			}
			h.want(b3, "event c/3<2")
			h.want(b2, "event c/3<2")
		})
	}
}

// TestD5_OlderViewAwaitsTheJoin: a device has the conversation from its view, another one knows nothing of it: so the join
// event is waited for. A third view shows that more has passed.
func TestD5_OlderViewAwaitsTheJoin(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		b2 := h.join("bob", 2)
		open := h.w.open("c", posthorn.Group, "ann", "bob")
		b3 := h.join("bob", 3) // head 1
		e2 := h.say("c", "ann")
		h.sub(b2) // head 2
		h.want(b3, "hint c/2 gap")
		h.tail(open, e2, h.say("c", "ann"))
		h.want(b2, "event c/3<2")
		h.want(b3, "event c/3<2")
	})
}

// TestOlderActivateIsVoid once a newer sub has begun.
func TestOlderActivateIsVoid(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b := h.hello("bob", 2)
		older, err := h.Subscribe(h.t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		newer := h.subbing(b)
		older()
		h.pass("2")
		h.tail(h.say("c", "ann"))
		h.pass("2")
		older()
		h.want(b)
		newer()
		h.want(b, "event c/2<1")
	})
}

// TestO1_SentWaitsForItsOwnViews: a message overtakes, by memory, what its sender's views lack. The views of somebody else,
// which hold all of it, are adopted meanwhile: that answers nobody but them, and `sent` keeps its place.
func TestO1_SentWaitsForItsOwnViews(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		a, b := h.hello("ann", 3), h.hello("bob", 4)
		activateA := h.subbing(a)
		h.subbing(b)
		open := h.w.open("c", posthorn.Group, "ann")
		h.pass("3") // ann's views: up to the open event
		join := h.w.commit("c", posthorn.KindJoin, "", "bob")
		said := h.say("c", "ann")
		h.pass("4") // bob's: all of it
		h.own(said, a)
		h.pass("4")
		h.hello("bob", 4) // and is gone, before it was active
		h.want(b, "bye REPLACED")
		h.tail(open, join)
		h.pass("3")
		activateA()
		h.want(a, "event c/2<1", "sent c/3<2")
	})
}

// TestO1_BackWhileAHoleIsOpen: one who has left is followed still, with old periods, since an event that is missing may be
// theirs. Their device's views hold already that they are in again; so does the hub, once the join comes.
func TestO1_BackWhileAHoleIsOpen(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b := h.join("bob", 2)
		missing := h.say("c", "ann")
		h.tail(h.w.commit("c", posthorn.KindLeave, "ann", "bob"))
		h.sleep(time.Second) // is not waited for any longer
		h.want(b, "event c/3<2")
		join := h.w.commit("c", posthorn.KindJoin, "ann", "bob")
		h.sub(b)
		h.tail(join, h.say("c", "ann"))
		h.want(b, "conv c/5", "event c/5<4")
		h.tail(missing)
		h.want(b)
	})
}
