package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// choosy wants a conversation once it was given the event that brought one of its users in, as the hub does.
type choosy struct {
	*listener
	user string
	mine sync.Map
}

func (c *choosy) Deliver(d []posthorn.Committed) {
	for _, x := range d {
		for _, u := range x.Event.Users {
			if u == c.user {
				c.mine.Store(x.Event.Conv, true)
			}
		}
	}
	c.listener.Deliver(d)
}

func (c *choosy) Wants(conv string, users []string) bool {
	for _, u := range users {
		if u == c.user {
			return true
		}
	}
	_, ok := c.mine.Load(conv)
	return ok
}

// A conversation and its first messages that become visible in one look reach its members, whatever the order of the rows.
func TestOneLookBringsAConversationAndItsMessages(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo")
	writer, _ := open(t, url)
	reader := &choosy{listener: newListener(), user: "bo"}
	s, err := store.New(store.Config{URL: url, Limits: slowPoll(), Poll: true, Fanout: reader})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop(t.Context())
	awaitReady(t, s)
	for i := range 20 {
		o, err := writer.OpenConversation(t.Context(), posthorn.Open{Creator: "ana", Device: 1, Cmid: fmt.Sprint("o", i), Kind: posthorn.Group, Members: []string{"bo"}})
		if err != nil {
			t.Fatal(err)
		}
		for j := range 3 {
			do(t, writer, msg(o.Conv, "ana", fmt.Sprint(j), "x"))
		}
		s.WakeTail()
		reader.awaitHead(t, o.Conv, 4)
	}
	if conv := group(t, writer, "ana"); reader.Wants(conv, nil) {
		t.Fatal("somebody else's conversation is wanted")
	}
}

// slowPoll leaves reading to WakeTail.
func slowPoll() posthorn.Limits {
	l := posthorn.DefaultLimits()
	l.TailPollMin, l.TailPollMax = time.Hour, time.Hour
	return l
}

func awaitReady(t *testing.T, s *store.Store) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); ; {
		ok := true
		for _, c := range s.Ready() {
			ok = ok && c.OK
		}
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not ready: %+v", s.Ready())
		}
	}
}

// The tail reads what other gateways and SQL commit, each event once and in order, also out of long transactions that
// began before and commit after the others.
func TestTailMissesNoLateCommit(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo")
	a, _ := open(t, url)
	b, lb := open(t, url, func(c *store.Config) { c.Poll = true })
	awaitReady(t, b) // the first look is where its log begins
	conv := group(t, a, "ana", "bo")
	other, err := a.OpenConversation(t.Context(), posthorn.Open{Creator: "ana", Device: 1, Cmid: "other", Kind: posthorn.Group})
	if err != nil {
		t.Fatal(err)
	}
	// The transaction takes its id now and commits after 50 younger ones.
	c := connect(t, url)
	if _, err := c.Exec(t.Context(), "begin"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "select posthorn.send($1, 'ana', 'late', 'late')", other.Conv); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		do(t, a, msg(conv, "ana", fmt.Sprint(i), "x"))
	}
	lb.awaitHead(t, conv, 51)
	if _, err := c.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	lb.awaitHead(t, other.Conv, 2)
	if e := lb.events[other.Conv][2]; e.Sender != "ana" || !e.ViaServer || *e.Body != "late" {
		t.Fatalf("%+v", e)
	}
}
