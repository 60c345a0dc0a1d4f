package hub

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/posthorn/posthorn"
)

// TestG1_NewerHelloWins is the hub's share of G1, and B21's rule for late closes: a device has one live connection here,
// and the end of an older one takes nothing from the newer.
func TestG1_NewerHelloWins(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		old := h.join("ann", 1)
		other := h.join("ann", 2)
		h.Register(old) // the same socket again is nothing new
		h.want(old)
		s := h.join("ann", 1)
		h.want(old, "bye REPLACED")
		h.Unregister(old)
		h.tail(h.say("c", "bob"))
		h.want(s, "event c/2<1")
		h.want(other, "event c/2<1")
		h.want(old)
		if _, err := h.Subscribe(h.t.Context(), old); posthorn.AsError(err).Code != posthorn.CodeReplaced {
			t.Errorf("sub of a replaced socket: %v", err)
		}
		h.Unregister(s)
		h.Unregister(s)
		h.tail(h.say("c", "bob"))
		h.want(other, "event c/3<2")
		h.want(s)
	})
}

// TestG1_ReplacedDuringItsSub: a sub that ends after its connection was replaced comes to nothing.
func TestG1_ReplacedDuringItsSub(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		h.w.gate(true)
		old := h.hello("ann", 1)
		done := make(chan error)
		go func() {
			_, err := h.Subscribe(h.t.Context(), old)
			done <- err
		}()
		synctest.Wait()
		s := h.hello("ann", 1)
		h.w.step(0)
		h.w.step(0)
		if err := <-done; posthorn.AsError(err).Code != posthorn.CodeReplaced {
			t.Errorf("the sub of the older one: %v", err)
		}
		h.Unregister(s)
		if err := h.empty(); err != nil {
			t.Error(err)
		}
	})
}

func TestRevokedAndCloseAll(t *testing.T) {
	inHouse(t, nil, func(h *house) {
		h.w.open("c", posthorn.Group, "ann", "bob")
		a, b, n := h.join("ann", 1), h.join("bob", 2), h.hello("bob", 3)
		h.Revoked(1)
		h.Revoked(99)
		h.tail(h.say("c", "bob"))
		h.want(a, "bye UNAUTHENTICATED")
		h.want(b, "event c/2<1")
		h.CloseAll(posthorn.CodeNewEpoch)
		h.want(b, "bye NEW_EPOCH")
		h.want(n, "bye NEW_EPOCH")
		if err := h.empty(); err != nil {
			t.Error(err)
		}
		// In the new epoch the log may be shorter: nothing of the old one is remembered.
		h.w.open("c", posthorn.Group, "ann", "bob")
		b = h.join("bob", 2)
		h.tail(h.say("c", "ann"))
		h.want(b, "event c/2<1")
	})
}

// TestStartStop: Stop waits, is legal twice and unstarted, and answers whoever waits for a Done.
func TestStartStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		if err := errors.Join(h.Stop(t.Context()), h.Stop(t.Context())); err != nil {
			t.Fatal(err)
		}
		h.Start(t.Context())
		if s := h.hello("ann", 1); len(s.log) != 1 || s.log[0].why != "SHUTTING_DOWN" {
			t.Errorf("a hello after Stop: %v", s.log)
		}

		h = newHouse(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		h.Start(ctx)
		h.Start(ctx)
		h.w.open("c", posthorn.Group, "ann", "bob")
		s := h.join("ann", 1)
		h.w.gate(true)
		h.tail(h.w.open("d", posthorn.Group, "bob", "ann")) // a load that hangs
		h.say("c", "bob")
		h.own(h.say("c", "ann"), s) // behind a gap
		h.own(h.say("d", "ann"), s) // behind the load
		h.want(s)
		cancel()
		if got := s.take(); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"sent c/3<2", "sent d/2<1"}) {
			t.Errorf("told %q", got)
		}
		if err := errors.Join(h.Stop(t.Context()), h.Stop(t.Context())); err != nil {
			t.Fatal(err)
		}
		h.own(h.say("c", "ann"), s)
		h.tail(h.say("c", "bob"))
		h.want(s, "sent c/4<3")
		if _, err := h.Subscribe(t.Context(), s); posthorn.AsError(err).Code != posthorn.CodeUnavailable {
			t.Errorf("a sub after Stop: %v", err)
		}
	})
}
