package store_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// G1: the newer hello wins over all gateways; the one that had the device before is told by a signal.
func TestG1_NewerHelloWins(t *testing.T) {
	url := pgtest.URL(t)
	a, la := open(t, url, quick)
	b, lb := open(t, url, quick, func(c *store.Config) { c.Poll = true })
	first, _ := hello(t, a, nil, "")
	same, _ := hello(t, a, install(1), "")
	other, _ := hello(t, b, install(1), "")
	newest := other.Viewer.Generation
	if first.Viewer.Generation < 1 || same.Viewer.Generation <= first.Viewer.Generation || newest <= same.Viewer.Generation {
		t.Fatalf("%+v %+v %+v", first, same, other)
	}
	id := first.Viewer.DeviceID
	eventually(t, "a to be told", func() bool { la.mu.Lock(); defer la.mu.Unlock(); return la.replaced[id] == newest })
	// Registered after the signal was read: nobody was there to hear it.
	la.mu.Lock()
	delete(la.replaced, id)
	la.mu.Unlock()
	a.Registered(same)
	eventually(t, "a to be told again", func() bool { la.mu.Lock(); defer la.mu.Unlock(); return la.replaced[id] == newest })
	b.Registered(other)
	again, _ := hello(t, a, nil, "") // back again
	eventually(t, "b to be told", func() bool { lb.mu.Lock(); defer lb.mu.Unlock(); return lb.replaced[id] == again.Viewer.Generation })
}

// Without the database for two thirds of the lease a gateway suspends; before it resumes it reads who has gone elsewhere.
func TestG1_SuspendsWithItsLease(t *testing.T) {
	url := pgtest.URL(t)
	var mu sync.Mutex
	var told []bool
	order := func(on bool) { mu.Lock(); told = append(told, on); mu.Unlock() }
	history := func() []bool { mu.Lock(); defer mu.Unlock(); return slices.Clone(told) }
	s, l := open(t, url, quick, func(c *store.Config) { c.Suspend = order })
	sess, _ := hello(t, s, nil, "")
	l.mu.Lock()
	l.devices = []posthorn.Viewer{sess.Viewer}
	l.mu.Unlock()
	c := connect(t, url)
	for _, q := range []string{"begin", "lock table posthorn.gateways in access exclusive mode", // the heartbeat waits, as for a dead host
		"update posthorn.device_routes set generation = 9000000000000000, gateway_id = 'elsewhere'"} {
		if _, err := c.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the gateway to suspend", func() bool { return slices.Equal(history(), []bool{true}) })
	if _, err := c.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the gateway to resume", func() bool { return slices.Equal(history(), []bool{true, false}) })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replaced[sess.Viewer.DeviceID] != 9000000000000000 {
		t.Fatalf("resumed without reading the generations: %v", l.replaced)
	}
}

// Hundreds of hellos at once are gathered, each gets its own answer, and one that is refused fails nobody else.
func TestHellosAreGathered(t *testing.T) {
	url := pgtest.URL(t)
	s, _ := open(t, url)
	pgtest.Exec(t, url, "insert into posthorn.users values ('gone')")
	pgtest.Exec(t, url, "insert into posthorn.devices (user_id, device_name, revoked_at) values ('gone', 'phone', now())")
	var wg sync.WaitGroup
	ids := make([]int64, 300)
	for i := range ids {
		wg.Go(func() {
			h := posthorn.Hello{User: "ana", Device: string(rune('A' + i))}
			if i%100 == 50 {
				h = posthorn.Hello{User: "gone", Device: "phone"}
			}
			sess, err := s.Hello(t.Context(), h)
			switch {
			case h.User == "gone" && (err == nil || posthorn.AsError(err).Code != posthorn.CodeUnauthenticated):
				t.Errorf("a revoked device: %v", err)
			case h.User == "ana" && (err != nil || sess.Viewer.Device != h.Device || sess.Viewer.Install != 1 || sess.Viewer.Generation < 1):
				t.Errorf("%+v, %v", sess, err)
			default:
				ids[i] = sess.Viewer.DeviceID
			}
		})
	}
	wg.Wait()
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != 298 { // 297 devices, and 0 for those refused
		t.Fatalf("%d devices", n)
	}
}
