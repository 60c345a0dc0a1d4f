package store_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// D5: a batch of our own whose answer was lost is pushed from the log, also where the tail had met its row before.
func TestD5_UnknownOutcomeIsPushed(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo")
	s, l := open(t, url, func(c *store.Config) { c.Gateway, c.Limits.SweepInterval = "me", 0 })
	conv := group(t, s, "ana", "bo")
	l.awaitHead(t, conv, 1)
	for round, met := range []bool{true, false} {
		n := store.BeginBatch(s)
		if met {
			pgtest.Exec(t, url, `with sent as (select * from posthorn.send_batch('me', `+itoa(n)+`, 'im_events', false, null, array['`+conv+`'], array['ana'],
				array[null]::bigint[], array[true], array['met'], array['x'], array[null]::text[], array[null]::bigint[])) select 1 from sent`)
			eventually(t, "the tail to meet the row", func() bool { s.WakeTail(); return store.HeldRows(s) == 1 })
			store.EndBatch(s, n, true)
		} else {
			store.EndBatch(s, n, true)
			pgtest.Exec(t, url, `with sent as (select * from posthorn.send_batch('me', `+itoa(n)+`, 'im_events', false, null, array['`+conv+`'], array['ana'],
				array[null]::bigint[], array[true], array['not met'], array['x'], array[null]::text[], array[null]::bigint[])) select 1 from sent`)
		}
		l.awaitHead(t, conv, int64(round+2))
	}
}

// D5: after the tail could not be read on, those who came into a conversation meanwhile are told, though nobody here
// followed it.
func TestD5_WhoCameInMeanwhile(t *testing.T) {
	url := pgtest.URL(t)
	a, _, _ := written(t, url, 1)
	reader := &choosy{listener: newListener(), user: "bo"}
	reader.devices = []posthorn.Viewer{{User: "bo", DeviceID: 5}}
	b, err := store.New(store.Config{URL: url, Limits: slowPoll(), Poll: true, Fanout: reader})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer b.Stop(t.Context())
	o, err := a.OpenConversation(t.Context(), posthorn.Open{Creator: "ana", Device: 1, Cmid: "later", Kind: posthorn.Group, Members: []string{"bo"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		pgtest.Exec(t, url, "select posthorn.trim('0', '0')")
	}
	b.WakeTail()
	reader.awaitHead(t, o.Conv, 1)
	do(t, a, msg(o.Conv, "ana", "on", "x"))
	b.WakeTail()
	reader.awaitHead(t, o.Conv, 2)
}

// E1: all stopped in order, the standby was promoted, and the gateway starts with what it had written down: it vouches.
func TestE1_VouchesFromItsFile(t *testing.T) {
	url := pgtest.URL(t)
	file := t.TempDir() + "/witness.json"
	with := func(c *store.Config) { c.Witness = file }
	s, _, conv := written(t, url, 3, with)
	first := s.Epoch()
	s.Stop(t.Context())
	// Its predecessor was killed: the lease is alive, and it is this process that goes on with the memory.
	for _, killed := range []bool{false, true} {
		if killed {
			id := pgtest.Query[string](t, url, "select gateway_id from posthorn.gateways")
			s.Stop(t.Context())
			pgtest.Exec(t, url, "insert into posthorn.gateways (gateway_id, lease_until) values ($1, clock_timestamp() + interval '1 minute')", id)
		}
		pgtest.Exec(t, url, promoted)
		s, _ = open(t, url, with, quick)
		eventually(t, "a send to pass", func() bool { return do(t, s, msg(conv, "ana", fmt.Sprint("killed ", killed), "x")).Err == nil })
		if got := epochOf(t, url); got != first {
			t.Fatalf("killed %v: a new epoch %d, though all that was seen is there", killed, got)
		}
	}
}

// E1: no epoch begins while a guarded transaction runs: what it was allowed to write belongs to one epoch.
func TestE1_NoEpochBeginsWithinATransaction(t *testing.T) {
	url := pgtest.URL(t)
	s, _, _ := written(t, url, 1)
	s.Stop(t.Context())
	const guard = `select epoch from posthorn.hold((select gateway_id from posthorn.gateways), (select nonce::text from posthorn.boot), 0, (select epoch from posthorn.sequence_space))`
	pgtest.Exec(t, url, "insert into posthorn.gateways (gateway_id) values ('g')")
	c := connect(t, url)
	for _, q := range []string{"begin", guard} {
		if _, err := c.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	first := epochOf(t, url)
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		pgtest.Exec(t, url, "select posthorn.settle('g', null, $1, false, null, false, '1 s')", first)
	}()
	eventually(t, "the new epoch to wait", func() bool {
		return pgtest.Query[bool](t, url, "select exists (select 1 from pg_locks where locktype = 'advisory' and not granted)")
	})
	if epochOf(t, url) != first {
		t.Fatal("it has begun")
	}
	if _, err := c.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	<-settled
	if epochOf(t, url) <= first {
		t.Fatal("it has not begun")
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
