package hub

import (
	"maps"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

func sweeping(l *posthorn.Limits) { l.SweepInterval = 5 * time.Second }

// ack is an ack frame and, unless it is lost, its flush.
func (h *house) ack(s *socket, conv string, seq int64, flushed bool) {
	h.Heard(s, conv, seq)
	if flushed {
		h.Delivered(s.viewer.DeviceID, conv, h.w.ack(s.viewer.DeviceID, conv, seq))
	}
}

func (h *house) wantLag(device int64, want map[string]int64) {
	h.t.Helper()
	if got := h.lags(device); !maps.Equal(got, want) {
		h.t.Fatalf("device %d lags by %v, want %v", device, got, want)
	}
}

// TestD5_LostPushIsSwept: a push that never arrived is noticed within grace + interval, one hint an interval, until the ack
// has committed. The sender lags by its `sent` likewise.
func TestD5_LostPushIsSwept(t *testing.T) {
	inHouse(t, sweeping, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		a, b := h.join("ann", 1), h.join("bob", 2)
		h.sleep(4701 * time.Millisecond)
		h.own(h.say("c", "ann"), a)
		h.want(a, "sent c/2<1")
		h.want(b, "event c/2<1")
		h.sleep(299 * time.Millisecond) // the sweep finds them within the grace
		h.want(b)
		h.ack(a, "c", 2, true)
		for range 3 {
			h.sleep(5 * time.Second)
			h.want(a)
			h.want(b, "hint c/2 sweep")
		}
		h.ack(b, "c", 2, false) // lost after it was heard: at first it holds the sweep back,
		h.sleep(4900 * time.Millisecond)
		h.ack(b, "c", 2, false) // but saying the same again does not
		h.ack(b, "c", 1, false)
		h.sleep(100 * time.Millisecond)
		h.want(b, "hint c/2 sweep")
		h.tail(h.say("c", "ann")) // 3
		h.want(b, "event c/3<2")
		h.sleep(4900 * time.Millisecond)
		h.ack(b, "c", 3, false)
		h.sleep(100 * time.Millisecond)
		h.want(b)
		h.ack(b, "c", 3, true)
		h.sleep(time.Minute)
		h.want(b)
		h.wantLag(2, map[string]int64{})
		if got := h.Stats(); got.Hints < 4 || got.Lagging != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// TestD5_SweepOff: interval 0 switches it off.
func TestD5_SweepOff(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b := h.join("bob", 2)
		h.tail(h.say("c", "ann"))
		h.sleep(time.Hour)
		h.want(b, "event c/2<1")
	})
}

// TestD5_LagAtSub: with a cursor a device lags by what lies above it; without one, lag starts with what subbed tells.
func TestD5_LagAtSub(t *testing.T) {
	inHouse(t, sweeping, func(h *house) {
		for _, c := range []string{"old", "new", "done"} {
			h.w.open(c, posthorn.Group, "ann", "bob")
			h.say(c, "ann")
		}
		h.w.ack(2, "old", 1)
		h.w.ack(2, "done", 2)
		b := h.join("bob", 2)
		h.wantLag(2, map[string]int64{"old": 2})
		h.sleep(5 * time.Second)
		h.want(b, "hint old/2 sweep")
		h.tail(h.say("new", "ann"), h.say("done", "ann"))
		h.wantLag(2, map[string]int64{"old": 2, "new": 3, "done": 3})
		h.ack(b, "new", 3, true)
		h.ack(b, "old", 2, true)
		h.wantLag(2, map[string]int64{"done": 3})
	})
}

// TestD5_AckAheadOfTheFanOut: a device has synced and acked what is fanned out only then: that is no lag.
func TestD5_AckAheadOfTheFanOut(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b := h.join("bob", 2)
		e2, e3 := h.say("c", "ann"), h.say("c", "ann")
		h.ack(b, "c", 2, true)
		h.tail(e2)
		h.want(b, "event c/2<1")
		h.wantLag(2, map[string]int64{})
		h.tail(e3)
		h.wantLag(2, map[string]int64{"c": 3})
		if n := len(h.devices[2].marks); n != 0 {
			t.Errorf("%d marks are left", n)
		}
	})
}

// TestD5_FormerMember: one who has left lags until the leave event is acked.
func TestD5_FormerMember(t *testing.T) {
	inHouse(t, sweeping, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b := h.join("bob", 2)
		h.tail(h.w.commit("c", posthorn.KindLeave, "bob", "bob"))
		h.say("c", "ann")
		h.want(b, "event c/2<1")
		h.sleep(5 * time.Second)
		h.want(b, "hint c/2 sweep")
		h.ack(b, "c", 1, true)
		h.Unregister(b)
		b = h.join("bob", 2)
		h.wantLag(2, map[string]int64{"c": 2})
		h.ack(b, "c", 2, true)
		h.wantLag(2, map[string]int64{})
		if len(h.convs) != 0 {
			t.Error("a conversation without local members is followed")
		}
	})
}

// TestB1_FullQueueCostsPushesOnly: whoever does not read loses pushes, is told by hints at once, and is swept; the others
// notice nothing.
func TestB1_FullQueueCostsPushesOnly(t *testing.T) {
	inHouse(t, sweeping, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		a, b := h.join("ann", 1), h.join("bob", 2)
		b.full.Store(true)
		h.tail(h.say("c", "ann"), h.say("c", "ann"))
		h.want(a, "event c/2<1", "event c/3<2")
		h.want(b, "hint c/2 overflow", "hint c/3 overflow")
		h.wantLag(2, map[string]int64{"c": 3})
		b.full.Store(false)
		h.sleep(5 * time.Second)
		h.want(b, "hint c/3 sweep")
		h.tail(h.say("c", "ann"))
		h.want(b, "event c/4<3")
		if got := h.Stats().Overflows; got != 2 {
			t.Errorf("%d overflows, want 2", got)
		}
	})
}

// TestB1_LagSetGivesItsRoomBack after a long absence.
func TestB1_LagSetGivesItsRoomBack(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		ids := make([]string, 100)
		for i := range ids {
			ids[i] = string(rune('A' + i))
			h.w.open(ids[i], posthorn.Group, "ann", "bob")
			h.w.ack(2, ids[i], 0)
		}
		b := h.join("bob", 2)
		if got := h.Stats().Lagging; got != 100 {
			t.Fatalf("%d entries", got)
		}
		for _, id := range ids {
			h.ack(b, id, 1, true)
		}
		if got := h.Stats().Lagging; got != 0 || h.devices[2].lag != nil {
			t.Errorf("%d entries, map kept: %v", got, h.devices[2].lag != nil)
		}
	})
}
