package store_test

import (
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

func sweeping(every time.Duration) func(*store.Config) {
	return func(c *store.Config) { c.Limits.SweepInterval = every }
}

// D5: a tail that drops one commit is found out without further traffic, repaired and counted.
func TestD5_AuditFindsADroppedCommit(t *testing.T) {
	url := pgtest.URL(t)
	a, _, conv := written(t, url, 1)
	b, lb := open(t, url, sweeping(20*time.Millisecond))
	do(t, a, msg(conv, "ana", "second", "x"))
	eventually(t, "b to follow", func() bool { lb.mu.Lock(); defer lb.mu.Unlock(); return lb.events[conv][3].Seq == 3 })
	lb.mu.Lock()
	lb.heads[conv] = 3
	lb.mu.Unlock()
	a.Stop(t.Context()) // its tail would take the fault
	if err := fault.Arm("store.drain:drop:0:1"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fault.Arm("") }()
	pgtest.Exec(t, url, "select posthorn.send($1, 'ana', 'dropped', 'x')", conv)
	lb.awaitHead(t, conv, 4)
	eventually(t, "it to be counted", func() bool { return b.Stats().Audited == 1 })
}

// Without loss it finds nothing, whatever is in flight meanwhile.
func TestAuditFindsNothingWhereNothingIsLost(t *testing.T) {
	url := pgtest.URL(t)
	a, _, conv := written(t, url, 1, sweeping(5*time.Millisecond))
	b, lb := open(t, url, sweeping(5*time.Millisecond))
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		for _, s := range []*store.Store{a, b} {
			if o := do(t, s, msg(conv, "ana", time.Now().String(), "x")); o.Err != nil {
				t.Fatal(o.Err)
			}
		}
	}
	lb.mu.Lock()
	n := len(lb.events[conv])
	lb.mu.Unlock()
	if st := a.Stats(); st.Audited+b.Stats().Audited != 0 || n == 0 {
		t.Fatalf("%d events; %+v %+v", n, st, b.Stats())
	}
}

// A cursor that the fan-out takes for caught up is compared with what is stored; one without a row counts for nothing.
func TestAuditOfCursors(t *testing.T) {
	url := pgtest.URL(t)
	s, l, conv := written(t, url, 3, sweeping(5*time.Millisecond))
	sess, _ := hello(t, s, nil, "")
	acked := make(chan error, 1)
	v := sess.Viewer
	s.SubmitAck(posthorn.Ack{Viewer: v, Conv: conv, Seq: 2, Done: func(_ int64, err error) { acked <- err }})
	if err := <-acked; err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.claims = []posthorn.Claim{
		{DeviceID: v.DeviceID, Install: v.Install, Conv: conv, Head: 4},
		{DeviceID: v.DeviceID, Install: v.Install + 1, Conv: conv, Head: 4},
		{DeviceID: v.DeviceID, Install: v.Install, Conv: "nowhere", Head: 4},
	}
	l.mu.Unlock()
	eventually(t, "the wrong one to be found", func() bool { return s.Stats().Corrected > 0 })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen != 1 {
		t.Fatalf("%d claims were compared", l.seen)
	}
}
