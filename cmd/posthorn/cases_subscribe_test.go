package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// What is committed in the instant in which subbed arrives, or while it is on its way, comes by itself: by push, by a hint
// of the sweep, or within subbed; never only after the next message, for nothing else is written until it is there.
func TestB19_BetweenSubscribedAndTheFirstLook(t *testing.T) {
	quick := func(c *serveCmd) { c.Sweep = 500 * time.Millisecond }
	home := serve(t, pgtest.URL(t), quick)
	other := serve(t, home.url, quick)
	writers := []*peer{home.connect(t, "ana", "phone"), other.connect(t, "ana", "tablet")}
	home.token(t, "bo", "phone")
	conv := writers[0].group("open", "bo")
	seq, hinted, n := int64(1), 0, rounds(40, 1000)
	for round := range n {
		gateway := []string{home.server.url(), other.server.url()}[round/2%2]
		var fresh *process
		if round%10 == 9 {
			fresh = spawn(t, "--database-url", home.url, "--sweep", "500ms")
			gateway = fresh.url
		}
		token := home.token(t, "bo", "phone")
		seq++
		ana, want := writers[round%2], seq
		came := between(t, gateway, token, round%3 == 2, func() {
			if s := ana.send(conv, fmt.Sprint("m", round), "x"); s.Seq != want {
				t.Errorf("round %d: %+v, want %d", round, s, want)
			}
		}, func(f wire.Frame) bool {
			switch f := f.(type) {
			case *wire.Event:
				return f.Ev.Conv == conv && f.Ev.Seq == want
			case *wire.Subbed:
				return f.Convs[0].Head >= want
			case *wire.Hint:
				return f.Conv == conv && f.Head == want
			}
			return false
		})
		if _, ok := came.(*wire.Hint); ok {
			hinted++
		}
		if fresh != nil && fresh.terminate(t, 12*time.Second) != 0 {
			t.Error("the fresh gateway did not end well")
		}
	}
	if hinted > n/10 { // each is an interval late
		t.Errorf("%d of %d rounds needed the sweep", hinted, n)
	}
}

// The first conversation that somebody ever has is made while subbed is on its way to them: its entry comes, then its
// first event.
func TestB19_FirstConversationAfterSub(t *testing.T) {
	home := serve(t, pgtest.URL(t))
	other := serve(t, home.url)
	writers := []*peer{home.connect(t, "ana", "phone"), other.connect(t, "ana", "tablet")}
	for round := range rounds(12, 200) {
		user := fmt.Sprint("new", round)
		token := home.token(t, user, "phone")
		var conv string
		entered := false
		between(t, []string{home.server.url(), other.server.url()}[round/2%2], token, round%3 == 2, func() {
			conv = writers[round%2].group(fmt.Sprint("open", round), user)
		}, func(f wire.Frame) bool {
			switch f := f.(type) {
			case *wire.Subbed:
				return len(f.Convs) > 0
			case *wire.Conv:
				entered = true
			case *wire.Event:
				if !entered || f.Ev.Kind != posthorn.KindOpen || f.Ev.Seq != 1 || f.Prev != 0 {
					t.Errorf("round %d: entry first %v, then %+v", round, entered, f)
				}
				return true
			}
			return false
		})
		if conv == "" {
			t.Fatalf("round %d: nothing was opened", round)
		}
	}
}

// between connects, and calls act in the instant in which subbed arrives, or early in that in which sub goes out; then it
// waits for the frame that was meant.
func between(t *testing.T, url, token string, early bool, act func(), meant func(wire.Frame) bool) wire.Frame {
	t.Helper()
	var acting sync.WaitGroup
	defer acting.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	instant := make(chan struct{})
	acting.Go(func() {
		select {
		case <-instant:
			act()
		case <-ctx.Done():
		}
	})
	c, err := client.Dial(ctx, url, &client.DialOptions{Tracer: tap{frame: func(d client.Direction, f wire.Frame, _ []byte) {
		if f.Type() == map[bool]string{true: "sub", false: "subbed"}[early] {
			close(instant)
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	p := &peer{Conn: c, t: t}
	ask[*wire.Welcome](p, &wire.Hello{Token: token, Device: "phone"})
	if f := ask[*wire.Subbed](p, &wire.Sub{}); meant(f) {
		return f
	}
	return frame(p, meant)
}
