package hub

import (
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

// TestD5_LagSinceTheFirstAck: a device without a cursor is not asked to catch up with what subbed told; but once it has
// acked something lower it has one, and its age counts from there.
func TestD5_LagSinceTheFirstAck(t *testing.T) {
	inHouse(t, sweeping, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		h.say("c", "ann")
		h.say("c", "ann")
		b := h.join("bob", 2)
		h.sleep(9900 * time.Millisecond)
		h.want(b)
		h.ack(b, "c", 1, true)
		h.wantLag(2, map[string]int64{"c": 3})
		if claims := h.Caught(10); len(claims) > 0 {
			t.Errorf("claims %+v", claims)
		}
		h.sleep(100 * time.Millisecond)
		h.want(b) // within the grace
		h.ack(b, "c", 1, true)
		h.sleep(5 * time.Second)
		h.want(b, "hint c/3 sweep")
		h.ack(b, "c", 3, true)
		h.wantLag(2, map[string]int64{})
		h.ack(b, "c", 2, true) // late, and less than is stored
		h.wantLag(2, map[string]int64{})
	})
}

// TestD5_AuditFindsADroppedRow: what the tail dropped is found by its head, at the end of the log and in the middle, and
// delivering from there on heals; a join that was dropped likewise.
func TestD5_AuditFindsADroppedRow(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b := h.join("bob", 2)
		behind := func(head, want int64) {
			t.Helper()
			if from := h.Behind("c", head); from != want {
				t.Errorf("head %d: behind from %d, want %d", head, from, want)
			}
		}
		behind(1, 0)
		e2 := h.say("c", "ann")
		behind(2, 2)
		h.tail(e2)
		behind(2, 0)
		e3, e4 := h.say("c", "ann"), h.say("c", "ann")
		h.tail(e4)
		behind(4, 3)
		h.sleep(time.Second) // is not waited for any longer
		behind(4, 3)
		behind(2, 0)
		h.tail(e3, e4)
		behind(4, 0)
		h.want(b, "event c/2<1", "event c/4<3", "event c/3<2")

		open := h.w.open("d", posthorn.Group, "ann", "bob")
		if h.Behind("d", 1) != 0 || h.Unaware("d", []string{"ann", "zoe"}, 1) || !h.Unaware("d", []string{"ann", "bob"}, 1) {
			t.Error("a conversation of which nobody here was told")
		}
		h.tail(open)
		h.want(b, "conv d/1", "event d/1<0")
		if h.Unaware("d", []string{"bob"}, 1) {
			t.Error("they were told")
		}
	})
}

// TestD5_AuditOfCursors: a cursor that the lag set has lost is put back and swept; one that has moved meanwhile, or belongs
// to an earlier install, is not.
func TestD5_AuditOfCursors(t *testing.T) {
	inHouse(t, sweeping, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		b := h.join("bob", 2)
		h.tail(h.say("c", "ann"))
		h.want(b, "event c/2<1")
		h.Delivered(2, "c", 2) // which is not so
		claims := h.Caught(10)
		if len(claims) != 1 || claims[0] != (posthorn.Claim{DeviceID: 2, Conv: "c", Head: 2}) {
			t.Fatalf("claims %+v", claims)
		}
		other := claims[0]
		other.Install = 7
		if n := h.Correct([]posthorn.Claim{other, {DeviceID: 9, Conv: "c", Head: 2}}); n != 0 {
			t.Errorf("%d corrected", n)
		}
		right := claims[0]
		right.Delivered = 2
		if n := h.Correct([]posthorn.Claim{right}); n != 0 {
			t.Errorf("%d corrected", n)
		}
		claims[0].Delivered = 1
		if n := h.Correct(claims); n != 1 {
			t.Errorf("%d corrected, want 1", n)
		}
		if n := h.Correct(claims); n != 0 {
			t.Errorf("%d corrected again", n)
		}
		h.sleep(5 * time.Second)
		h.want(b, "hint c/2 sweep")
	})
}

// audited is the audit in a world without loss, once all was delivered: it finds nothing.
func (m *model) audited() {
	claims := m.Caught(1000)
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for conv, lb := range m.w.convs {
		if from := m.Behind(conv, lb.head()); from != 0 {
			m.fail("%s is said to be behind from %d on, and has %d", conv, from, lb.head())
		}
		for user, ps := range lb.periods {
			if ps.Present() && m.Unaware(conv, []string{user}, ps[len(ps)-1].From) {
				m.fail("%s is said not to know that they are in %s", user, conv)
			}
		}
	}
	var stored []posthorn.Claim
	for _, x := range claims {
		if delivered, row := m.w.cursors[key(x.DeviceID, x.Conv)]; row {
			x.Delivered = delivered
			stored = append(stored, x)
		}
	}
	if wrong := m.Correct(stored); wrong != 0 {
		m.fail("%d cursors are said to be wrong: %+v", wrong, stored)
	}
}

// heal is the audit in a world with losses, as the store does it: whatever is missing is found by its head, or by who came
// in with it, and delivered again.
func (m *model) heal() {
	m.w.mu.Lock()
	var found []posthorn.Event
	for conv, lb := range m.w.convs {
		from := m.Behind(conv, lb.head())
		for i := range lb.events {
			ev := lb.events[i]
			if bringsIn(&ev) && m.Unaware(conv, ev.Users, ev.Seq) && (from == 0 || ev.Seq < from) {
				from = ev.Seq
			}
		}
		if from > 0 {
			found = append(found, lb.events[from-1:]...)
		}
	}
	m.w.mu.Unlock()
	m.tail(found...)
	m.sleep(2 * lastBackOff)
	m.judge()
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for conv, lb := range m.w.convs {
		if from := m.Behind(conv, lb.head()); from != 0 {
			m.fail("%s is behind from %d on still, and has %d", conv, from, lb.head())
		}
	}
	clear(m.lost)
}
