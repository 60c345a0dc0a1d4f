package store_test

import (
	"testing"

	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// The log tail is trimmed below what was noted and below the oldest running transaction; consumers hold it back.
func TestTrim(t *testing.T) {
	url := pgtest.URL(t)
	s, _, conv := written(t, url, 3)
	rows := func() int { return pgtest.Query[int](t, url, "select count(*)::int from posthorn.event_commits") }
	trim := func(keep, hold string) {
		pgtest.Exec(t, url, "select posthorn.trim($1::text::interval, $2::text::interval)", keep, hold)
	}
	trim("1 hour", "1 hour") // notes
	trim("1 hour", "1 hour")
	if rows() != 4 {
		t.Fatalf("%d rows before their time", rows())
	}
	// A consumer that stands before all of it, within its time.
	pgtest.Exec(t, url, "insert into posthorn.consumers (name, position) values ('slow', '3:3:')")
	trim("0", "1 hour")
	if rows() != 4 {
		t.Fatalf("%d rows, though a consumer has not read them", rows())
	}
	// An old transaction that has an id holds the bound.
	c := connect(t, url)
	for _, q := range []string{"begin", "insert into posthorn.settings values ('x', 'y')"} {
		if _, err := c.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	do(t, s, msg(conv, "ana", "young", "x"))
	trim("0", "0")
	trim("0", "0")
	if rows() != 1 {
		t.Fatalf("%d rows; the one above the old transaction must stay, the others go", rows())
	}
	if _, err := c.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	trim("0", "0")
	trim("0", "0")
	if rows() != 0 {
		t.Fatalf("%d rows", rows())
	}
}

// Who was away for longer than the tail is kept compares heads, and misses nothing.
func TestReaderBehindTheTrimmedTail(t *testing.T) {
	url := pgtest.URL(t)
	a, _, conv := written(t, url, 1)
	b, lb := open(t, url, func(c *store.Config) { c.Limits, c.Poll = slowPoll(), true })
	lb.mu.Lock()
	lb.heads[conv] = 2
	lb.mu.Unlock()
	for _, cmid := range []string{"x", "y", "z"} {
		do(t, a, msg(conv, "ana", cmid, "x"))
	}
	for range 2 {
		pgtest.Exec(t, url, "select posthorn.trim('0', '0')")
	}
	if n := pgtest.Query[int](t, url, "select count(*)::int from posthorn.event_commits"); n != 0 {
		t.Fatalf("%d rows are left", n)
	}
	b.WakeTail()
	lb.awaitHead(t, conv, 5)
	if b.Stats().Repaired != 1 {
		t.Fatalf("%+v", b.Stats())
	}
	// And reads on by the log.
	do(t, a, msg(conv, "ana", "on", "x"))
	b.WakeTail()
	lb.awaitHead(t, conv, 6)
}
