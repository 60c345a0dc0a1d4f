package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// After a promotion the epoch stays only if all gateways that may have seen something lost say that nothing is. Here the
// new timeline is made by writing an older one into the row; internal/lab has real promotions.

const promoted = "update posthorn.sequence_space set timeline = '00000000'"

func settled(t *testing.T, url string) func() bool {
	return func() bool {
		return pgtest.Query[bool](t, url, "select timeline = posthorn.timeline() from posthorn.sequence_space")
	}
}

func TestE1_AllVouchForANewTimeline(t *testing.T) {
	url := pgtest.URL(t)
	a, _, conv := written(t, url, 3)
	first := a.Epoch()
	b, lb := open(t, url, quick)
	do(t, b, msg(conv, "ana", "by b", "x"))
	lb.awaitHead(t, conv, 0)
	pgtest.Exec(t, url, promoted)
	eventually(t, "the timeline to be settled", settled(t, url))
	if epochOf(t, url) != first {
		t.Fatal("a new epoch though all vouch")
	}
	for _, s := range []*store.Store{a, b} {
		eventually(t, "both to serve", func() bool { return do(t, s, msg(conv, "ana", time.Now().String(), "x")).Err == nil })
	}
}

func TestE1_OneGatewayHasSeenMore(t *testing.T) {
	url := pgtest.URL(t)
	s, _, conv := written(t, url, 3)
	first := s.Epoch()
	open(t, url, quick) // has seen nothing
	pgtest.Exec(t, url, "delete from posthorn.events where conv_id = $1 and seq > 3", conv)
	pgtest.Exec(t, url, promoted)
	eventually(t, "a new epoch", func() bool { return epochOf(t, url) > first })
}

// One that was alive and does not speak may have acknowledged what is lost: it is waited for, one lease at most.
func TestE1_SilentGateway(t *testing.T) {
	url := pgtest.URL(t)
	s, _, conv := written(t, url, 3)
	first := s.Epoch()
	pgtest.Exec(t, url, "insert into posthorn.gateways (gateway_id, lease_until) values ('gone', clock_timestamp() + interval '1 minute')")
	pgtest.Exec(t, url, promoted)
	eventually(t, "the gateway to wait", func() bool {
		return pgtest.Query[bool](t, url, "select vote is not null from posthorn.sequence_space")
	})
	if o := do(t, s, msg(conv, "ana", "meanwhile", "x")); o.Err == nil {
		t.Fatal("served before it was decided")
	}
	for _, c := range s.Ready() {
		if c.Name == "history" && c.OK {
			t.Fatal("ready before it was decided")
		}
	}
	eventually(t, "a new epoch", func() bool { return epochOf(t, url) > first })
}

func TestE1_NobodyWasThere(t *testing.T) {
	url := pgtest.URL(t)
	s, _, _ := written(t, url, 3)
	first := s.Epoch()
	s.Stop(t.Context())
	pgtest.Exec(t, url, promoted)
	open(t, url, quick)
	eventually(t, "a new epoch", func() bool { return epochOf(t, url) > first })
}

// A timeline below one that was seen is an older primary: it is refused until it has gone.
func TestE1_OlderPrimaryIsRefused(t *testing.T) {
	url := pgtest.URL(t)
	file := filepath.Join(t.TempDir(), "witness.json")
	with := func(c *store.Config) { c.Witness = file }
	s, _, conv := written(t, url, 3, with)
	s.Stop(t.Context())
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte(`"timeline":"0000000`), []byte(`"timeline":"1000000`), 1)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ = open(t, url, with, quick)
	if o := do(t, s, msg(conv, "ana", "x", "x")); o.Err == nil || s.Stats().Refused == 0 {
		t.Fatalf("%+v %+v", o, s.Stats())
	}
	for _, c := range s.Ready() {
		if c.Name == "history" && (c.OK || c.Why == "") {
			t.Fatalf("%+v", c)
		}
	}
}
