package store_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// E1: history that was rewound is noticed. The database is put back by hand, under a gateway or between two lives of one;
// what must follow is a new epoch, told to the fan-out before anything is served in it.

// written opens a store and sends n messages into a group; its head is n+1.
func written(t *testing.T, url string, n int, edit ...func(*store.Config)) (*store.Store, *listener, string) {
	t.Helper()
	people(t, url, "ana", "bo")
	s, l := open(t, url, append(edit, quick)...)
	conv := group(t, s, "ana", "bo")
	for i := range n {
		if o := do(t, s, msg(conv, "ana", string(rune('a'+i)), "x")); o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	return s, l, conv
}

// quick shortens the timers of leases.
func quick(c *store.Config) {
	c.Limits.GatewayLease, c.Limits.GatewayBeat = 2*time.Second, 50*time.Millisecond
}

// rewind takes back what a conversation got after head, as a restored backup would.
func rewind(t *testing.T, url, conv string, head int64) {
	t.Helper()
	pgtest.Exec(t, url, "delete from posthorn.events where conv_id = $1 and seq > $2", conv, head)
	pgtest.Exec(t, url, "update posthorn.conversations set next_seq = least(next_seq, $2::bigint + 1) where conv_id = $1", conv, head)
	pgtest.Exec(t, url, "delete from posthorn.event_commits where last_seq[1] > $1", head)
	pgtest.Exec(t, url, "update posthorn.gateways set beat = 0")
}

func epochOf(t *testing.T, url string) int64 {
	return pgtest.Query[int64](t, url, "select epoch from posthorn.sequence_space")
}

// told lists the epochs that a fan-out was told.
func (l *listener) told() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.epochs)
}

func TestE1_RewoundUnderARunningGateway(t *testing.T) {
	url := pgtest.URL(t)
	s, l, conv := written(t, url, 5)
	first := s.Epoch()
	rewind(t, url, conv, 3)
	// Whatever is asked first is refused, until the epoch is a new one.
	var o posthorn.Outcome
	eventually(t, "a send to be taken again", func() bool {
		o = do(t, s, msg(conv, "ana", "later", "x"))
		if o.Err == nil && o.Epoch == first {
			t.Fatalf("sent in the old epoch: %+v", o)
		}
		return o.Err == nil
	})
	now := epochOf(t, url)
	if o.Seq != 4 || o.Epoch != now || now < time.Now().Add(-time.Minute).UnixMilli() {
		t.Fatalf("%+v in epoch %d", o, now)
	}
	if got := l.told(); !slices.Equal(got, []int64{first, now}) {
		t.Fatalf("epochs %v", got)
	}
	if s.Stats().Renewals != 1 {
		t.Fatalf("%+v", s.Stats())
	}
	// A session of the old epoch is not served: a seq that it names is another event now.
	old := msg(conv, "ana", "reply", "x")
	old.Epoch, old.ReplyTo = first, 4
	if o := do(t, s, old); code(o) != posthorn.CodeUnavailable {
		t.Fatalf("%+v", o)
	}
	if _, err := s.Page(t.Context(), posthorn.Viewer{User: "ana", Epoch: first}, posthorn.PageQuery{Conv: conv}); posthorn.AsError(err).Code != posthorn.CodeUnavailable {
		t.Fatal(err)
	}
	acked := make(chan error, 1)
	s.SubmitAck(posthorn.Ack{Viewer: posthorn.Viewer{User: "ana", DeviceID: 1, Install: 1, Epoch: first}, Conv: conv, Seq: 4, Done: func(_ int64, err error) { acked <- err }})
	if err := <-acked; posthorn.AsError(err).Code != posthorn.CodeUnavailable {
		t.Fatal(err)
	}
}

// What a gateway has seen outlives it in its file; without the file nobody knows.
func TestE1_RewoundBetweenTwoLives(t *testing.T) {
	for _, remembers := range []bool{true, false} {
		url := pgtest.URL(t)
		file := filepath.Join(t.TempDir(), "witness.json")
		with := func(c *store.Config) { c.Witness = file }
		s, _, conv := written(t, url, 5, with)
		first := s.Epoch()
		s.Stop(t.Context())
		rewind(t, url, conv, 3)
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatal(info, err)
		}
		if !remembers {
			file += ".none"
		}
		open(t, url, with, quick)
		if renewed := epochOf(t, url) > first; renewed != remembers {
			t.Fatalf("remembers %v, renewed %v", remembers, renewed)
		}
	}
}

// A restart of the same database changes nothing, and a memory of another installation says nothing.
func TestE1_SameDatabaseKeepsItsEpoch(t *testing.T) {
	url := pgtest.URL(t)
	file := filepath.Join(t.TempDir(), "witness.json")
	with := func(c *store.Config) { c.Witness = file }
	s, _, conv := written(t, url, 3, with)
	first := s.Epoch()
	s.Stop(t.Context())
	s, _ = open(t, url, with, quick)
	if o := do(t, s, msg(conv, "ana", "d", "x")); o.Err != nil || o.Epoch != first {
		t.Fatalf("%+v", o)
	}
	s.Stop(t.Context())
	other := pgtest.URL(t)
	pgtest.Exec(t, other, "update posthorn.sequence_space set space_id = gen_random_uuid()")
	open(t, other, with, quick)
	if epochOf(t, other) != first || epochOf(t, url) != first { // both come from one template
		t.Fatal("a new epoch without a reason")
	}
}

// The same dump restored twice gets two epochs, each above every one before.
func TestE1_NoEpochIsUsedTwice(t *testing.T) {
	url := pgtest.URL(t)
	s, _, conv := written(t, url, 4)
	first := s.Epoch()
	seen := []int64{first}
	for range 3 {
		rewind(t, url, conv, 2)
		pgtest.Exec(t, url, "update posthorn.sequence_space set epoch = $1", first) // the dump's
		eventually(t, "a new epoch", func() bool { return epochOf(t, url) > seen[len(seen)-1] && s.Epoch() == epochOf(t, url) })
		seen = append(seen, epochOf(t, url))
		for i := range 2 {
			cmid := time.Now().String() + string(rune('a'+i))
			eventually(t, "a send to pass", func() bool { return do(t, s, msg(conv, "ana", cmid, "x")).Err == nil })
		}
	}
}

func TestE1_AnotherClusterAndAdopt(t *testing.T) {
	for _, adopted := range []bool{false, true} {
		url := pgtest.URL(t)
		file := filepath.Join(t.TempDir(), "witness.json")
		with := func(c *store.Config) { c.Witness = file }
		s, _, _ := written(t, url, 2, with)
		first := s.Epoch()
		s.Stop(t.Context())
		// As a dump looks in another cluster: its identifier, and transaction ids that are still to come here.
		pgtest.Exec(t, url, "update posthorn.sequence_space set system_identifier = 42, trimmed_through = '9999999999'")
		pgtest.Exec(t, url, "update posthorn.event_commits set tx = '8888888888'")
		if adopted {
			if told, err := store.Adopt(t.Context(), url, ""); err != nil || told == "" {
				t.Fatal(told, err)
			}
			if told, err := store.Adopt(t.Context(), url, ""); err != nil || told != "" {
				t.Fatal("adopted again:", told, err)
			}
		}
		s, l := open(t, url, quick, with)
		if renewed := epochOf(t, url) > first; renewed == adopted {
			t.Fatalf("adopted %v, renewed %v", adopted, renewed)
		}
		conv := pgtest.Query[string](t, url, "select conv_id from posthorn.conversations")
		if o := do(t, s, msg(conv, "ana", "next", "x")); o.Err != nil {
			t.Fatal(o.Err)
		}
		pgtest.Exec(t, url, "update posthorn.boot set nonce = gen_random_uuid()") // a crash, after which all is compared again
		s.WakeTail()
		now := epochOf(t, url)
		eventually(t, "a send after it", func() bool { return do(t, s, msg(conv, "ana", "after", "x")).Err == nil })
		if epochOf(t, url) != now {
			t.Fatal("what was another cluster's is asked for again")
		}
		// The tail reads on by this cluster's ids.
		pgtest.Exec(t, url, "select posthorn.send($1, 'ana', 'sql', 'x')", conv)
		eventually(t, "what SQL sent", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.events[conv]) == 3 })
		if n := pgtest.Query[int](t, url, "select count(*)::int from posthorn.event_commits where tx >= '8888888888'"); n != 0 {
			t.Fatalf("%d commits of another cluster are left", n)
		}
	}
}

// A client that has seen a later epoch is heard, once in ten minutes, and not beyond a day ahead.
func TestE1_PresentedByAClient(t *testing.T) {
	url := pgtest.URL(t)
	s, _ := open(t, url, quick)
	show := func(epoch int64) error {
		_, err := s.Hello(t.Context(), posthorn.Hello{User: "ana", Device: "phone", Epoch: epoch})
		return err
	}
	if err := show(time.Now().Add(48 * time.Hour).UnixMilli()); err != nil {
		t.Fatal(err)
	}
	shown := time.Now().Add(time.Hour).UnixMilli()
	eventually(t, "an epoch above the one shown", func() bool { _ = show(shown); return epochOf(t, url) == shown+1 && s.Epoch() == shown+1 })
	_ = show(shown + 1000)
	eventually(t, "the client to be served", func() bool { return show(0) == nil })
	if got := epochOf(t, url); got != shown+1 {
		t.Fatalf("heard again: %d", got)
	}
}

// What was fanned out counts, also of a conversation that is not among the remembered pairs.
func TestE1_FannedOutMoreThanThereIs(t *testing.T) {
	url := pgtest.URL(t)
	s, l, conv := written(t, url, 2)
	first := s.Epoch()
	store.Forget(s)
	l.mu.Lock()
	l.heads[conv] = 9
	l.mu.Unlock()
	pgtest.Exec(t, url, "update posthorn.boot set nonce = gen_random_uuid()")
	eventually(t, "a new epoch", func() bool { return epochOf(t, url) > first })
}

// Nothing found is an answer too, and is not given of a history that nobody has compared.
func TestE1_EmptyAnswersAreGuarded(t *testing.T) {
	url := pgtest.URL(t)
	s, _, conv := written(t, url, 2)
	s.Stop(t.Context()) // its tail would compare
	s, _ = open(t, url, func(c *store.Config) { c.Limits, c.Poll = slowPoll(), true })
	pgtest.Exec(t, url, "update posthorn.boot set nonce = gen_random_uuid()")
	v := posthorn.Viewer{User: "stranger", DeviceID: 77, Install: 1}
	for what, ask := range map[string]func() error{
		"page":  func() error { _, err := s.Page(t.Context(), v, posthorn.PageQuery{Conv: "nowhere"}); return err },
		"known": func() error { _, err := s.Page(t.Context(), v, posthorn.PageQuery{Conv: conv}); return err },
		"list":  func() error { _, err := s.Conversations(t.Context(), v, posthorn.ListQuery{}); return err },
		"views": func() error { _, err := s.LoadDevice(t.Context(), v); return err },
	} {
		if err := ask(); posthorn.AsError(err).Code != posthorn.CodeUnavailable {
			t.Errorf("%s: %v", what, err)
		}
		pgtest.Exec(t, url, "update posthorn.boot set nonce = gen_random_uuid()") // the wake of the first may have been obeyed
	}
}

// A file that somebody has edited is as none.
func TestWitnessFileOfNonsense(t *testing.T) {
	url := pgtest.URL(t)
	file := filepath.Join(t.TempDir(), "witness.json")
	first := epochOf(t, url)
	for _, text := range []string{"", "{", `{"batches":[{"tx":"drop"}]}`, `{"pairs":{"a\u0000":{}}}`, `[]`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, _ := open(t, url, func(c *store.Config) { c.Witness = file })
		if s.Epoch() != first {
			t.Fatalf("%q: epoch %d", text, s.Epoch())
		}
		s.Stop(t.Context())
	}
}

// What this gateway has shown in a page counts, though nobody here follows the conversation.
func TestE1_SeenInAPage(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo")
	s, _ := open(t, url, quick, func(c *store.Config) { c.Fanout = &choosy{listener: newListener(), user: "nobody"} })
	conv := group(t, s, "ana", "bo")
	first := s.Epoch()
	for _, cmid := range []string{"a", "b"} {
		pgtest.Exec(t, url, "select posthorn.send($1, 'ana', $2, 'x')", conv, cmid)
	}
	store.Forget(s)
	if _, err := s.Page(t.Context(), posthorn.Viewer{Server: true}, posthorn.PageQuery{Conv: conv, After: 1}); err != nil {
		t.Fatal(err)
	}
	rewind(t, url, conv, 2)
	eventually(t, "a new epoch", func() bool { return epochOf(t, url) > first })
}
