package client

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// Goal: a file that cannot be used says why, and is not touched.
func TestStoreThatCannotBeUsed(t *testing.T) {
	write := func(change func(tx *bbolt.Tx) error) func(path string) {
		return func(path string) {
			db, err := bbolt.Open(path, 0o600, nil)
			if err == nil {
				err = db.Update(change)
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = db.Close()
		}
	}
	ours := func(change func(tx *bbolt.Tx) error) func(path string) {
		return func(path string) {
			s, err := openStore(path, true)
			if err != nil {
				t.Fatal(err)
			}
			body := strings.Repeat("x", 50_000)
			for i := range 20 {
				_ = s.update(func(tx storeTx) error {
					_, err := tx.putItem(0, item{Op: OpSend, Conv: "c", Cmid: fmt.Sprint(i), Body: &body})
					return err
				}, nil)
			}
			_ = s.close()
			write(change)(path)
		}
	}
	bytesOf := func(change func(b []byte) []byte) func(path string) {
		return func(path string) {
			ours(func(*bbolt.Tx) error { return nil })(path)
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(path string)
		want  error
	}{
		"newer":       {ours(func(tx *bbolt.Tx) error { return tx.Bucket(bMeta).Put(kFormat, []byte("2")) }), ErrStoreNewer},
		"foreign":     {write(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err }), ErrStoreForeign},
		"format":      {ours(func(tx *bbolt.Tx) error { return tx.Bucket(bMeta).Put(kFormat, []byte("one")) }), ErrStoreCorrupt},
		"identity":    {ours(func(tx *bbolt.Tx) error { return tx.Bucket(bMeta).Put(kIdentity, []byte(`{"install":1.5}`)) }), ErrStoreCorrupt},
		"cursor":      {ours(func(tx *bbolt.Tx) error { return tx.Bucket(bCursors).Put([]byte("c"), []byte(`{"seq":7e0}`)) }), ErrStoreCorrupt},
		"item":        {ours(func(tx *bbolt.Tx) error { return tx.Bucket(bOutbox).Put(numKey(3), []byte(`[]`)) }), ErrStoreCorrupt},
		"text":        {func(path string) { _ = os.WriteFile(path, []byte(strings.Repeat("no store\n", 4000)), 0o600) }, ErrStoreCorrupt},
		"cut short":   {bytesOf(func(b []byte) []byte { return b[:len(b)/2] }), ErrStoreCorrupt},
		"zeroes":      {bytesOf(func(b []byte) []byte { return append(b[:8192:8192], make([]byte, len(b)-8192)...) }), ErrStoreCorrupt},
		"both metas":  {bytesOf(func(b []byte) []byte { return append(bytes.Repeat([]byte{0xff}, 8192), b[8192:]...) }), ErrStoreCorrupt},
		"a directory": {func(path string) { _ = os.Mkdir(path, 0o700) }, os.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			c.spoil(path)
			before, _ := os.ReadFile(path)
			s, err := openStore(path, true)
			if err == nil {
				_ = s.close()
				t.Fatal("it was opened")
			}
			if c.want != os.ErrInvalid && !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name the file", err)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestStoreLocked(t *testing.T) {
	path := t.TempDir() + "/store"
	s, err := openStore(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := openStore(path, true); !errors.Is(err, ErrStoreLocked) {
		t.Errorf("opened twice: %v", err)
	}
}

// Goal: changes that wait together share a commit, a failing one harms no neighbour, and what follows a commit follows in
// the order of the commits.
func TestStoreGroupsChanges(t *testing.T) {
	s, err := openStore(t.TempDir()+"/store", false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	boom := errors.New("boom")
	var keys []uint64 // on the writer's goroutine
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			var key uint64
			err := s.update(func(tx storeTx) (err error) {
				if key, err = tx.putItem(0, item{Cmid: fmt.Sprint(i)}); err == nil && i%10 == 0 {
					err = boom
				}
				return err
			}, func() { keys = append(keys, key) })
			if (i%10 == 0) != errors.Is(err, boom) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
	err = s.view(func(tx storeTx) error {
		items, err := tx.items()
		if len(items) != 180 || len(keys) != 180 {
			t.Errorf("%d items, %d told, want 180", len(items), len(keys))
		}
		for i := range items {
			if items[i].key != keys[i] {
				t.Fatalf("told %v", keys)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Goal: what was sent is remembered for a day and no longer, and never more of it than the bound.
func TestSentIsForgotten(t *testing.T) {
	s, err := openStore(t.TempDir()+"/store", true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	count := func() (n int) {
		_ = s.view(func(tx storeTx) error {
			return tx.tx.Bucket(bSent).ForEach(func(_, _ []byte) error { n++; return nil })
		})
		return n
	}
	put := func(n int, at time.Time) {
		t.Helper()
		err := s.update(func(tx storeTx) error {
			for i := range n {
				if err := tx.putSent(0, sentRecord{Item: item{Conv: "c", Cmid: fmt.Sprint(i)}, Stored: at.UnixMilli()}); err != nil {
					return err
				}
			}
			return nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	put(20, time.Now().Add(-25*time.Hour))
	if n := count(); n != 0 {
		t.Errorf("%d records of yesterday", n)
	}
	put(20, time.Now().Add(48*time.Hour)) // the clock was set back since
	put(20, time.Now().Add(-23*time.Hour))
	if n := count(); n != 40 {
		t.Errorf("%d records, want 40", n)
	}
	put(sentRecords+100, time.Now())
	if n := count(); n > sentRecords || n < sentRecords-200 {
		t.Errorf("%d records, want %d", n, sentRecords)
	}
}

// FuzzRecords holds every decoder of stored records to this: damage is an error that says so, and what is read back is
// written again as the same.
func FuzzRecords(f *testing.F) {
	body := "hi <b> \u2028"
	for _, b := range [][]byte{
		eventRecord(3, posthorn.Event{Conv: "c", Seq: 4, Kind: posthorn.KindMsg, Mid: "m", Sender: "ann", Cmid: "x", Body: &body, Data: []byte(`{"n": 9007199254740993}`), At: time.UnixMilli(5)}),
		wire.Append(nil, &wire.Conv{Entry: posthorn.Entry{Conv: "c", Kind: posthorn.Group, Head: 5, LastAt: time.UnixMilli(7)}}),
		encode(item{Op: OpSend, Conv: "c", Cmid: "x", Body: &body, Data: []byte(`{}`), ReplyTo: 7}),
		encode(cursor{Epoch: 1, Install: 2, Seq: 3, Start: 1}), encode(identity{User: "ann", Resume: "n"}),
		encode(sentRecord{Key: 1, Item: item{Cmid: "x"}, Seq: 4}),
		[]byte(`{"t":"event","prev":0,"ev":{"conv":"c","seq":9007199254740993,"kind":"msg"}}`), []byte(`{"seq":1e3}`), []byte(`null`), nil,
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if ev, err := decodeEvent(b); err == nil {
			again, err := decodeEvent(eventRecord(ev.Prev, ev.Ev))
			if err != nil || !reflect.DeepEqual(again, ev) {
				t.Errorf("%s reads as %+v, and written again as %+v (%v)", b, ev, again, err)
			}
		} else if !errors.Is(err, errRecord) {
			t.Error(err)
		}
		if e, err := decodeEntry(b); err == nil {
			if again, err := decodeEntry(wire.Append(nil, &wire.Conv{Entry: e})); err != nil || !reflect.DeepEqual(again, e) {
				t.Errorf("%s reads as %+v, and written again as %+v (%v)", b, e, again, err)
			}
		} else if !errors.Is(err, errRecord) {
			t.Error(err)
		}
		sameAgain[item](t, b)
		sameAgain[cursor](t, b)
		sameAgain[identity](t, b)
		sameAgain[sentRecord](t, b)
	})
}

func sameAgain[T any](t *testing.T, b []byte) {
	var v, again T
	if err := decode(b, &v); err != nil {
		if !errors.Is(err, errRecord) {
			t.Error(err)
		}
		return
	}
	if err := decode(encode(v), &again); err != nil || !bytes.Equal(encode(v), encode(again)) {
		t.Errorf("%s reads as %+v, and written again as %+v (%v)", b, v, again, err)
	}
}

// Goal: a feed never holds the client up, and a reader that lags finds one mark where changes are missing.
func TestFeedOverflow(t *testing.T) {
	c := &Client{}
	f := c.Subscribe(3)
	kinds := func() string {
		var s []string
		for len(f.C()) > 0 {
			ch := <-f.C()
			s = append(s, fmt.Sprint(int(ch.Kind), ch.Conv))
		}
		return strings.Join(s, " ")
	}
	say := func(names ...string) {
		for _, n := range names {
			c.feeds.publish(Change{Kind: ChangeEvent, Conv: n})
		}
	}
	say("a", "b", "c", "d", "e")
	if got := kinds(); got != "1a 1b 1c 7" {
		t.Errorf("told %q", got)
	}
	say("f", "g", "h", "i")
	<-f.C()
	<-f.C()
	say("j", "k", "l") // j comes after the mark, k and l are lost behind it
	if got := kinds(); got != "1h 7 1j 7" {
		t.Errorf("told %q", got)
	}
	c.feeds.close()
	if _, ok := <-f.C(); ok {
		t.Error("the feed was not closed with the client")
	}
	f.Close()
	if _, ok := <-c.Subscribe(1).C(); ok {
		t.Error("a feed of a closed client is open")
	}
}
