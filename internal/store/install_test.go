package store_test

import (
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

func hello(t *testing.T, s *store.Store, install *int64, resume string) (posthorn.Session, posthorn.Code) {
	t.Helper()
	sess, err := s.Hello(t.Context(), posthorn.Hello{User: "ana", Device: "phone", Install: install, Resume: resume})
	if err != nil {
		return sess, posthorn.AsError(err).Code
	}
	return sess, ""
}

func install(n int64) *int64 { return &n }

// I1: which install a hello gets, and that a store which was copied or restored is seen by its nonce.
func TestI1_InstallsAndNonces(t *testing.T) {
	s, _ := open(t, pgtest.URL(t))
	first, _ := hello(t, s, nil, "")
	if first.Viewer.Install != 1 || first.Resume == "" {
		t.Fatalf("a new device: %+v", first)
	}
	if next, _ := hello(t, s, nil, ""); next.Viewer.Install != 2 || next.Viewer.DeviceID != first.Viewer.DeviceID {
		t.Fatalf("without an install: %+v", next)
	}
	if at, _ := hello(t, s, install(2), ""); at.Viewer.Install != 2 {
		t.Fatalf("equal, taken at its word: %+v", at)
	}
	if up, _ := hello(t, s, install(7), ""); up.Viewer.Install != 7 {
		t.Fatalf("higher: %+v", up)
	}
	if _, code := hello(t, s, install(6), ""); code != posthorn.CodeStaleInstall {
		t.Fatalf("lower: %s", code)
	}

	one, _ := hello(t, s, install(7), "")
	two, _ := hello(t, s, install(7), one.Resume)
	// A crash between welcome and store is no clone: the client comes back with the nonce before, as often as it likes.
	for range 3 {
		if two, _ = hello(t, s, install(7), one.Resume); two.Viewer.Install != 7 {
			t.Fatalf("the nonce before: %+v", two)
		}
	}
	// From the first frame on it is void.
	s.FirstFrame(two)
	await(t, s, "the previous nonce to be void", "select resume_prev is null from posthorn.devices")
	clone, _ := hello(t, s, install(7), one.Resume)
	if clone.Viewer.Install != 8 {
		t.Fatalf("a stale nonce: %+v", clone)
	}
	// The original is now the older install.
	if back, _ := hello(t, s, install(7), two.Resume); back.Viewer.Install != 9 {
		t.Fatalf("the original after its clone: %+v", back)
	}
	if odd, _ := hello(t, s, install(9), "no uuid at all"); odd.Viewer.Install != 10 {
		t.Fatalf("a nonce that is none: %+v", odd)
	}
}

// I1: the frames of an install that was replaced are refused, wherever they arrive, and move nothing.
func TestI1_OldInstallIsRefused(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo")
	s, _ := open(t, url)
	conv := group(t, s, "bo", "ana")
	for _, c := range []string{"a", "b", "c"} {
		do(t, s, msg(conv, "bo", c, "x"))
	}
	old, _ := hello(t, s, nil, "")
	ack := func(v posthorn.Viewer, seq int64) (int64, posthorn.Code) {
		type result struct {
			n   int64
			err error
		}
		got := make(chan result, 1)
		s.SubmitAck(posthorn.Ack{Viewer: v, Conv: conv, Seq: seq, Done: func(n int64, err error) { got <- result{n, err} }})
		r := <-got
		if r.err != nil {
			return 0, posthorn.AsError(r.err).Code
		}
		return r.n, ""
	}
	if n, code := ack(old.Viewer, 3); n != 3 || code != "" {
		t.Fatalf("%d %s", n, code)
	}
	now, _ := hello(t, s, nil, "")
	if _, code := ack(old.Viewer, 4); code != posthorn.CodeStaleInstall {
		t.Fatalf("an ack of the old install: %s", code)
	}
	for _, q := range []posthorn.PageQuery{{Conv: conv}, {Conv: conv, Tail: 1}, {Conv: conv, History: true}} {
		if _, err := s.Page(t.Context(), old.Viewer, q); posthorn.AsError(err).Code != posthorn.CodeStaleInstall {
			t.Fatalf("%+v of the old install: %v", q, err)
		}
	}
	// The new install starts anew: what the old one acked does not count, and a lower ack replaces it.
	p, err := s.Page(t.Context(), now.Viewer, posthorn.PageQuery{Conv: conv, Tail: 2})
	if err != nil || p.Start != 2 || len(p.Events) != 2 {
		t.Fatalf("%+v %v", p, err)
	}
	if n, code := ack(now.Viewer, 2); n != 2 || code != "" {
		t.Fatalf("%d %s", n, code)
	}
}

// await asks until a query says true.
func await(t *testing.T, s *store.Store, what, query string) {
	t.Helper()
	for range 3000 {
		var ok bool
		if err := s.Pool().QueryRow(t.Context(), query).Scan(&ok); err != nil {
			t.Fatal(err)
		}
		if ok {
			return
		}
		if _, err := s.Pool().Exec(t.Context(), "select pg_sleep(0.01)"); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

// I1, E1: after a rewind an honest device knows a nonce that the database has never seen. It goes on in its install; a copy
// of it that comes later is found out as ever.
func TestI1_NoncesOfAnotherEpoch(t *testing.T) {
	url := pgtest.URL(t)
	s, _ := open(t, url, quick)
	first, _ := hello(t, s, nil, "")
	second, _ := hello(t, s, install(1), first.Resume)
	s.FirstFrame(second)
	await(t, s, "the first nonce to be void", "select resume_prev is null from posthorn.devices")
	// The dump was taken before the second hello.
	pgtest.Exec(t, url, "update posthorn.devices set resume = $1::uuid", first.Resume)
	pgtest.Exec(t, url, "update posthorn.sequence_space set epoch = epoch + 1000, system_identifier = 7")
	var now posthorn.Session
	eventually(t, "a session in the new epoch", func() bool {
		var code posthorn.Code
		now, code = hello(t, s, install(1), second.Resume)
		return code == ""
	})
	if now.Viewer.Install != 1 || now.Viewer.Epoch == first.Viewer.Epoch {
		t.Fatalf("an honest device: %+v", now)
	}
	again, _ := hello(t, s, install(1), second.Resume) // it had not stored the welcome
	if again.Viewer.Install != 1 {
		t.Fatalf("the nonce before: %+v", again)
	}
	s.FirstFrame(again)
	await(t, s, "the older nonce to be void", "select resume_prev is null from posthorn.devices")
	if clone, _ := hello(t, s, install(1), second.Resume); clone.Viewer.Install != 2 {
		t.Fatalf("a copy: %+v", clone)
	}
}
