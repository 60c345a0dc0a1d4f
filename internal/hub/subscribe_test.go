package hub

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/posthorn/posthorn"
)

// subbing begins a sub whose views wait at the gates: step once for the snapshot, once more to return.
func (h *house) subbing(s *socket) (activate func()) {
	var ready func()
	var err error
	h.w.gate(true)
	go func() { ready, err = h.Subscribe(h.t.Context(), s) }()
	synctest.Wait()
	return func() {
		h.t.Helper()
		synctest.Wait()
		if err != nil || ready == nil {
			h.t.Fatalf("sub: %v", err)
		}
		ready()
	}
}

// TestB19_NothingIsLostBetweenSubAndActivate is the hub's share of B19: a message is sent at every moment of a sub, in a
// conversation that somebody here follows already and in one that nobody does. What the views hold is told by subbed,
// everything else is pushed after activate, in order.
func TestB19_NothingIsLostBetweenSubAndActivate(t *testing.T) {
	for _, followed := range []bool{false, true} {
		t.Run(fmt.Sprint("followed=", followed), func(t *testing.T) {
			inHouse(t, nil, func(h *house) {
				h.w.open("c", posthorn.Group, "ann", "bob")
				if followed {
					h.join("bob", 2)
				}
				s := h.hello("ann", 1)
				h.tail(h.say("c", "bob")) // 2
				activate := h.subbing(s)
				if !h.Wants("c", nil) {
					t.Fatal("while views are being read everything must be wanted")
				}
				h.tail(h.say("c", "bob")) // 3
				late := h.say("c", "bob") // 4
				h.w.step(0)               // snapshot
				synctest.Wait()
				h.tail(h.say("c", "bob")) // 5, before 4
				h.tail(late)
				h.tail(h.say("c", "bob")) // 6
				h.w.step(0)
				synctest.Wait()
				h.tail(h.say("c", "bob")) // 7
				h.want(s)
				activate()
				h.want(s, "event c/5<4", "event c/6<5", "event c/7<6")
				activate()
				h.tail(h.say("c", "bob"))
				h.want(s, "event c/8<7")
			})
		})
	}
}

// TestB19_TheFirstConversationIsCovered: a user without any conversation comes into one between sub and activate.
func TestB19_TheFirstConversationIsCovered(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		s := h.hello("ann", 1)
		activate := h.subbing(s)
		h.w.step(0)
		h.w.step(0)
		synctest.Wait()
		h.w.gate(false)
		h.tail(h.w.open("c", posthorn.Group, "bob", "ann"), h.say("c", "bob"))
		h.want(s)
		activate()
		h.want(s, "conv c/2", "event c/1<0", "event c/2<1")
	})
}

// TestB19_SnapshotAheadOfTheTail: the views are read before the tail brings what they hold already. It is not pushed to
// this socket, but to the user's other one.
func TestB19_SnapshotAheadOfTheTail(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		a1, b := h.join("ann", 1), h.join("bob", 3)
		e2, e3 := h.say("c", "bob"), h.say("c", "bob")
		a2 := h.join("ann", 2)
		h.tail(e2, e3, h.say("c", "bob"))
		h.want(a1, "event c/2<1", "event c/3<2", "event c/4<3")
		h.want(b, "event c/2<1", "event c/3<2", "event c/4<3")
		h.want(a2, "event c/4<3")
	})
}

// TestSubAgain: a second sub begins anew and doubles nothing; until it has ended, and if it fails, the first one holds.
func TestSubAgain(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		s := h.join("ann", 1)
		h.tail(h.say("c", "bob"))
		h.want(s, "event c/2<1")
		activate := h.subbing(s)
		h.tail(h.say("c", "bob"))
		h.w.step(0)
		synctest.Wait()
		h.tail(h.say("c", "bob"))
		h.w.step(0)
		h.want(s)
		activate()
		h.want(s, "event c/4<3")

		h.w.gate(false)
		h.w.away(true)
		if _, err := h.Subscribe(h.t.Context(), s); !errors.Is(err, errAway) {
			t.Fatalf("sub while the database is away: %v", err)
		}
		h.tail(h.say("c", "bob"))
		h.want(s, "event c/5<4")

		n := h.hello("bob", 2)
		if _, err := h.Subscribe(h.t.Context(), n); err == nil {
			t.Fatal("no error")
		}
		h.tail(h.say("c", "bob"))
		h.want(n)
	})
}

// TestSubEndsWithItsContext, whether it waits for other subs or for the database.
func TestSubEndsWithItsContext(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.gate(true)
		ctx, cancel := context.WithCancel(h.t.Context())
		done := make(chan error)
		for i := range int64(6) {
			s := h.hello("ann", i+1)
			go func() {
				_, err := h.Subscribe(ctx, s)
				done <- err
			}()
		}
		synctest.Wait()
		if h.w.loads != 4 {
			t.Errorf("%d loads at once, want 4", h.w.loads)
		}
		cancel()
		for range 6 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		for i := range int64(6) {
			h.Unregister(h.devices[i+1].sock)
		}
		if err := h.empty(); err != nil {
			t.Error(err)
		}
	})
}

// TestB1_BuffersOfASubAreBounded: what finds no room before activate is told by a hint after it; what finds none before
// the views have come is read with new ones.
func TestB1_BuffersOfASubAreBounded(t *testing.T) {
	inHouse(t, func(l *posthorn.Limits) { l.HubBuffer = 3 }, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		s := h.hello("ann", 1)
		activate := h.subbing(s)
		h.w.step(0)
		synctest.Wait()
		for range 4 {
			h.tail(h.say("c", "bob")) // 2 to 5, behind the snapshot
		}
		h.w.step(0)
		synctest.Wait()
		h.w.step(0) // the second snapshot
		synctest.Wait()
		h.tail(h.say("c", "bob"))
		h.w.step(0)
		synctest.Wait()
		for range 4 {
			h.tail(h.say("c", "bob"))
		}
		activate()
		h.want(s, "event c/6<5", "event c/7<6", "event c/8<7", "hint c/10 overflow")
		h.tail(h.say("c", "bob"))
		h.want(s, "event c/11<10")
		if got := h.Stats().Overflows; got != 2 {
			t.Errorf("%d overflows, want 2", got)
		}
	})
}
