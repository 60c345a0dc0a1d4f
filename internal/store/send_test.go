package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
)

func TestFirstSend(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo")
	s, l := open(t, url)
	conv := group(t, s, "ana", "bo")
	one := do(t, s, msg(conv, "ana", "m1", "hello"))
	if one.Err != nil || one.Seq != 2 || one.Prev != 1 || one.Dup {
		t.Fatalf("first send: %+v", one)
	}
	again := do(t, s, msg(conv, "ana", "m1", "hello"))
	if again.Err != nil || again.Seq != 2 || !again.Dup || again.Mid != one.Mid || !again.At.Equal(one.At) {
		t.Fatalf("again: %+v", again)
	}
	if c := code(do(t, s, msg(conv, "ana", "m1", "other"))); c != posthorn.CodeCmidReused {
		t.Fatalf("other content: %s", c)
	}
	if c := code(do(t, s, msg(conv, "eve", "m1", "hello"))); c != posthorn.CodeNotMember {
		t.Fatalf("a stranger: %s", c)
	}
	if c := code(do(t, s, msg("nowhere", "ana", "m1", "hello"))); c != posthorn.CodeNotMember {
		t.Fatalf("no such conversation: %s", c)
	}
	l.awaitHead(t, conv, 2)
	p, err := s.Page(t.Context(), posthorn.Viewer{User: "bo"}, posthorn.PageQuery{Conv: conv})
	if err != nil || len(p.Events) != 2 || p.Upto != 2 || p.Head != 2 || *p.Events[1].Body != "hello" {
		t.Fatalf("page: %+v %v", p, err)
	}
}

// D2, P1: many senders of one cmid, in one batch and over several, through two stores on one database.
func TestD2_OneRowForOneCmid(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo")
	a, la := open(t, url)
	b, _ := open(t, url)
	conv := group(t, a, "ana", "bo")
	for round := range 25 {
		var wg sync.WaitGroup
		out := make([]posthorn.Outcome, 20)
		for i := range out {
			wg.Add(1)
			go func() {
				defer wg.Done()
				s := a
				if i%2 == 1 {
					s = b
				}
				out[i] = do(t, s, msg(conv, "ana", fmt.Sprint("c", round), "x"))
			}()
		}
		wg.Wait()
		fresh := 0
		for _, o := range out {
			if o.Err != nil || o.Seq != int64(round)+2 {
				t.Fatalf("round %d: %+v", round, o)
			}
			if !o.Dup {
				fresh++
			}
		}
		if fresh != 1 {
			t.Fatalf("round %d: %d answers without dup", round, fresh)
		}
	}
	la.awaitHead(t, conv, 26)
	if n := pgtest.Query[int64](t, url, "select count(*) from posthorn.events where conv_id = $1", conv); n != 26 {
		t.Fatalf("%d rows", n)
	}
}
