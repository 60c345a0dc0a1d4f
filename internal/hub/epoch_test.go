package hub

import (
	"testing"

	"github.com/posthorn/posthorn"
)

// The audit's questions: nothing is reported where nothing is lost, and what the tail dropped is, until it is delivered.
func TestD5_AuditQuestions(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		open := h.w.open("c", posthorn.Group, "ana", "bo")
		bo := h.join("bo", 1)
		if h.Behind("c", 1) != 0 || h.Behind("nowhere", 9) != 0 || h.Unaware("c", []string{"bo"}, 1) {
			t.Fatal("something is missing though nothing happened")
		}
		h.tail(open)
		h.tail(h.say("c", "ana"))
		dropped := h.say("c", "ana")
		h.want(bo, "event c/2<1")
		if got := h.Behind("c", 3); got != 3 {
			t.Fatalf("behind from %d", got)
		}
		if h.Behind("c", 2) != 0 {
			t.Fatal("what was delivered is missing")
		}
		h.tail(dropped)
		h.want(bo, "event c/3<2")
		if h.Behind("c", 3) != 0 {
			t.Fatal("still behind")
		}

		// A conversation that bo came into, and nobody has told.
		h.w.open("new", posthorn.Group, "ana", "bo")
		if !h.Unaware("new", []string{"ana", "bo"}, 1) {
			t.Fatal("bo has not been told")
		}
		if h.Unaware("new", []string{"ana", "cy"}, 1) {
			t.Fatal("nobody here came in")
		}
		h.tail(h.w.convs["new"].events[0])
		if got := bo.take(); len(got) == 0 || h.Unaware("new", []string{"bo"}, 1) {
			t.Fatalf("told %q", got)
		}
		// Who has left, and had the leave, need not be told of the join before it.
		h.tail(h.w.commit("new", posthorn.KindLeave, "bo", "bo"))
		bo.take()
		if h.Unaware("new", []string{"bo"}, 1) {
			t.Fatal("told anew of a stay that is over")
		}
	})
}

// A device without a cursor is told a head; from its first ack on it lags like any other.
func TestD5_LagFromTheFirstAck(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.tail(h.w.open("c", posthorn.Group, "ana", "bo"))
		for range 5 {
			h.say("c", "ana")
		}
		bo := h.join("bo", 1)
		h.wantLag(1, nil)
		h.ack(bo, "c", 3, true)
		h.wantLag(1, map[string]int64{"c": 6})
		h.ack(bo, "c", 6, true)
		h.wantLag(1, nil)
	})
}

// G1: of two connections of a device the one with the higher generation lives, whichever comes first.
func TestG1_GenerationsDecide(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		at := func(generation int64) *socket {
			s := &socket{viewer: posthorn.Viewer{User: "ana", DeviceID: 1, Generation: generation}}
			h.Register(s)
			return s
		}
		two := at(2)
		one := at(1) // its hello was the earlier one
		h.want(one, "bye REPLACED")
		h.want(two)
		h.Unregister(one)
		h.Replaced(1, 2)
		h.want(two)
		if len(h.Devices()) != 1 {
			t.Fatalf("%+v", h.Devices())
		}
		h.Replaced(1, 3) // elsewhere
		h.want(two, "bye REPLACED")
		three := at(4)
		h.Replaced(1, 3)
		h.want(three)
	})
}

// E1: a new epoch closes what is of another one, and takes nothing of it any more.
func TestE1_NewEpoch(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.NewEpoch(1)
		h.tail(h.w.open("c", posthorn.Group, "ana", "bo"))
		in := func(epoch, device int64) *socket {
			s := &socket{viewer: posthorn.Viewer{User: "bo", DeviceID: device, Epoch: epoch}}
			h.Register(s)
			return s
		}
		bo := in(1, 1)
		h.sub(bo)
		h.NewEpoch(1)
		h.want(bo)
		late := h.say("c", "ana")
		h.NewEpoch(9)
		h.want(bo, "bye NEW_EPOCH")
		h.want(in(1, 2), "bye NEW_EPOCH") // its hello was on its way
		now := in(9, 1)
		h.sub(now)
		answered := false
		h.Deliver([]posthorn.Committed{{Event: late, Epoch: 1, Op: &posthorn.Op{Done: func(o posthorn.Outcome) { answered = o.Err == posthorn.ErrUnknown }}}})
		h.want(now)
		if !answered {
			t.Fatal("the sender of what may be gone was told that it is there")
		}
	})
}
