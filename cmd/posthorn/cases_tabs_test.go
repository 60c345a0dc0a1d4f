package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// Tabs of one device that open at one instant do not fight: the newest hello wins, each other one is told REPLACED with
// close status 4001 and stays away until somebody asks it to come back.
func TestB73_TabsOfOneDevice(t *testing.T) {
	n := serve(t, pgtest.URL(t))
	for _, count := range []int{2, 10} {
		t.Run(fmt.Sprintf("%d sockets", count), func(t *testing.T) { tabSockets(t, []*node{n}, count) })
		t.Run(fmt.Sprintf("%d tabs", count), func(t *testing.T) { tabDevices(t, []*node{n}, count, false) })
	}
	t.Run("a duplicated tab", func(t *testing.T) { tabDevices(t, []*node{n}, 2, true) })
}

// tabSockets has one device say hello on many sockets at once, again and again: one of them lives.
func tabSockets(t *testing.T, nodes []*node, count int) {
	ana := nodes[0].connect(t, "ana", "phone")
	user := fmt.Sprint("raw", count, len(nodes))
	token := nodes[0].token(t, user, "browser")
	conv := ana.group("open "+user, user)
	for round := range rounds(5, 200) {
		tabs := make([]*peer, count)
		for i := range tabs {
			tabs[i] = nodes[i%len(nodes)].dial(t, nil)
		}
		var opening sync.WaitGroup
		for _, p := range tabs {
			opening.Go(func() {
				// One that loses meanwhile may get an error here; how it ended is judged below.
				_, err := p.Hello(t.Context(), &wire.Hello{Token: token, Device: "browser"})
				for try := true; try; {
					if err == nil {
						_, err = p.Call(t.Context(), &wire.Sub{})
					}
					if try = posthorn.AsError(err).Code == posthorn.CodeUnavailable; try {
						t.Logf("round %d: %v", round, err)
						err = nil
					}
				}
			})
		}
		opening.Wait()
		seq := ana.send(conv, fmt.Sprint("m", round), "x").Seq
		heard, ended := make(chan *peer, count), make(chan *peer, count)
		var reading sync.WaitGroup
		for _, p := range tabs {
			reading.Go(func() {
				for in := range p.Frames() {
					if ev, ok := in.Frame.(*wire.Event); ok && ev.Ev.Seq == seq {
						heard <- p
					}
				}
				ended <- p
			})
		}
		alive, late := map[*peer]bool{}, time.After(patience)
		for _, p := range tabs {
			alive[p] = true
		}
		for hears := map[*peer]bool{}; ; {
			if one := only(alive); one != nil && hears[one] {
				// A loser on another gateway may hear it too, before it is told.
				if a := ask[*wire.Acked](one, &wire.Ack{Conv: conv, Seq: seq}); a.Delivered != seq {
					t.Errorf("round %d: %+v", round, a)
				}
				break
			}
			select {
			case p := <-heard:
				hears[p] = true
			case p := <-ended:
				delete(alive, p)
				replaced(t, p)
			case <-late:
				t.Fatalf("round %d: %d of %d sockets live, %d hear", round, len(alive), count, len(hears))
			}
		}
		for _, p := range tabs {
			_ = p.Close()
		}
		reading.Wait()
	}
}

// only is the one that is left, nil while there are more or none.
func only(alive map[*peer]bool) (one *peer) {
	for p := range alive {
		if len(alive) == 1 {
			one = p
		}
	}
	return one
}

// replaced wants the goodbye and the close status of one who lost.
func replaced(t *testing.T, p *peer) {
	t.Helper()
	var status websocket.CloseError
	if err := p.Err(); posthorn.AsError(err).Code != posthorn.CodeReplaced || !errors.As(err, &status) || status.Code != 4001 {
		t.Errorf("a socket ended with %v", p.Err())
	}
}

// tabDevices has one device run as several clients of the SDK, each on a store of its own; copied: of one store.
func tabDevices(t *testing.T, nodes []*node, count int, copied bool) {
	ana := nodes[0].connect(t, "ana", "phone")
	user := fmt.Sprint("tabs", count, copied, len(nodes))
	cfg := nodes[0].deviceConfig(t, user, "browser")
	conv := ana.group("open "+user, user)
	var image []byte
	if copied {
		c := begin(t, cfg)
		reaches(t, c, conv, 1)
		_ = c.Close()
		var err error
		if image, err = os.ReadFile(cfg.StorePath); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	tabs, hellos, story := make([]*client.Client, count), make([]int, count), make([][]string, count)
	var mu sync.Mutex // guards hellos and story
	for i := range tabs {
		tab := cfg
		tab.URL, tab.StorePath = nodes[i%len(nodes)].server.url(), filepath.Join(dir, fmt.Sprint("tab", i))
		tab.Tracer = tap{frame: func(_ client.Direction, f wire.Frame, _ []byte) {
			mu.Lock()
			defer mu.Unlock()
			switch f := f.(type) {
			case *wire.Hello:
				hellos[i]++
				story[i] = append(story[i], "hello")
			case *wire.Welcome:
				story[i] = append(story[i], fmt.Sprint("install ", f.InstallEpoch))
			case *wire.Error:
				story[i] = append(story[i], "error "+string(f.Code))
			case *wire.Bye:
				story[i] = append(story[i], "bye "+string(f.Code))
			}
		}}
		if copied {
			if err := os.WriteFile(tab.StorePath, image, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := client.Open(t.Context(), tab)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		tabs[i] = c
	}
	for _, c := range tabs { // open already, so that all start at one instant
		if err := c.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	settled := func() (winner *client.Client) {
		phases := map[client.Phase]int{}
		for _, c := range tabs {
			s := c.State()
			if phases[s.Phase]++; s.Phase == client.Online {
				winner = c
			}
		}
		if phases[client.Online] == 1 && phases[client.Replaced] == count-1 {
			return winner
		}
		return nil
	}
	poll(t, "one tab to remain", func() bool { return settled() != nil })
	mu.Lock()
	before := fmt.Sprint(hellos)
	for i, h := range hellos {
		if h > 2 {
			t.Errorf("tab %d connected %d times: %q", i, h, story[i])
		}
	}
	mu.Unlock()
	winner := settled()
	watch := time.NewTimer(time.Duration(rounds(300, 60_000)) * time.Millisecond)
	defer watch.Stop()
	last := int64(1)
	for over := false; !over; {
		last = ana.send(conv, fmt.Sprint("m", last), "x").Seq
		reaches(t, winner, conv, last)
		select {
		case <-watch.C:
			over = true
		default:
		}
	}
	sameAsTable(t, nodes[0].url, winner, conv)
	mu.Lock()
	defer mu.Unlock()
	if after := fmt.Sprint(hellos); after != before || settled() != winner {
		t.Errorf("the tabs went on: hellos %s, then %s: %q", before, after, story)
	}
}
