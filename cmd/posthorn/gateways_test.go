package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// rounds is how many rounds a test makes here, and how many at night.
func rounds(few, night int) int {
	if os.Getenv("POSTHORN_NIGHTLY") != "" {
		return night
	}
	return few
}

func bye(p *peer) posthorn.Code { return frame[*wire.Bye](p, nil).Code }

// live tells that a connection is served.
func live(p *peer) { ask[*wire.Subbed](p, &wire.Sub{}) }

// G1: a device lives on one gateway; the newer hello wins, and the older connection is told REPLACED wherever it is.
func TestG1_OneLiveConnectionOverTwoGateways(t *testing.T) {
	url := pgtest.URL(t)
	a, b := serve(t, url), serve(t, url)
	for i := range rounds(5, 200) {
		device := fmt.Sprint("d", i)
		first := a.connect(t, "ana", device)
		second := b.connect(t, "ana", device)
		if code := bye(first); code != posthorn.CodeReplaced {
			t.Fatal(code)
		}
		live(second)
	}
}

// G1: 200 devices, each on two gateways, one of which is cut off from the database: within the lease one of the two
// connections is served, whichever way round they came, and none is closed for it. Healed, the older ones are REPLACED.
func TestG1_GatewayCutOffFromTheDatabase(t *testing.T) {
	const devices = 200
	for range rounds(1, 3) {
		url := pgtest.URL(t)
		relay := pgtest.NewRelay(t, url)
		lease := func(c *serveCmd) { c.Lease = 2 * time.Second }
		cut, other := serve(t, relay.URL, lease), serve(t, url, lease)
		older, newer := make([]*peer, devices), make([]*peer, devices)
		token, name := make([]string, devices), make([]string, devices)
		each := func(f func(i int)) {
			var wg sync.WaitGroup
			for i := range devices {
				wg.Go(func() { f(i) })
			}
			wg.Wait()
		}
		for i := range devices {
			name[i] = fmt.Sprint("d", i)
			token[i] = other.token(t, "ana", name[i])
		}
		each(func(i int) { older[i] = cut.enter(t, token[i], name[i]) })
		relay.Freeze()
		frozen := time.Now()
		each(func(i int) { newer[i] = other.enter(t, token[i], name[i]) })
		poll(t, "the gateway that is cut off to suspend", func() bool { return cut.store.Stats().Suspensions == 1 })
		if took := time.Since(frozen); took > 2*time.Second+patience/4 {
			t.Errorf("it served for %v of a lease of 2 s", took)
		}
		each(func(i int) {
			live(newer[i])
			older[i].refused(&wire.Sub{}, posthorn.CodeUnavailable)
		})
		relay.Thaw()
		each(func(i int) {
			if code := bye(older[i]); code != posthorn.CodeReplaced {
				t.Errorf("device %d was told %s", i, code)
			}
			live(newer[i])
		})
	}
}

// G1: a database that is away for longer than the lease closes no socket.
func TestG1_DatabaseAwayClosesNoSocket(t *testing.T) {
	url := pgtest.URL(t)
	relay := pgtest.NewRelay(t, url)
	n := serve(t, relay.URL, func(c *serveCmd) { c.Lease = time.Second })
	ana, bo := n.connect(t, "ana", "phone"), n.connect(t, "bo", "phone")
	conv := ana.group("open", "bo")
	live(ana)
	live(bo)
	for range rounds(2, 10) {
		relay.Freeze()
		relay.Cut()
		suspended := n.store.Stats().Suspensions
		poll(t, "the gateway to suspend", func() bool { return n.store.Stats().Suspensions > suspended })
		body := "while it is away"
		ana.refused(&wire.Send{Conv: conv, Cmid: fmt.Sprint(suspended), Body: &body}, posthorn.CodeUnavailable)
		ask[*wire.Pong](bo, &wire.Ping{RID: "p"})
		relay.Thaw()
		poll(t, "the gateway to serve again", func() bool { return ready(n) })
		poll(t, "the send to pass", func() bool {
			_, err := ana.Call(t.Context(), &wire.Send{Conv: conv, Cmid: fmt.Sprint(suspended), Body: &body})
			return err == nil
		})
		frame(bo, func(e *wire.Event) bool { return e.Ev.Cmid == fmt.Sprint(suspended) })
	}
}

func ready(n *node) bool {
	for _, c := range n.server.Conditions() {
		if !c.OK {
			return false
		}
	}
	return true
}

// Typing crosses gateways by the lossy channel, and does not where nothing listens.
func TestTypingOverTwoGateways(t *testing.T) {
	url := pgtest.URL(t)
	a, b := serve(t, url), serve(t, url)
	deaf := serve(t, url, func(c *serveCmd) { c.Doorbell = "poll" })
	poll(t, "both to listen", func() bool { return ready(a) && ready(b) })
	ana, bo := a.connect(t, "ana", "phone"), b.connect(t, "bo", "phone")
	cy := deaf.connect(t, "cy", "phone")
	conv := ana.group("open", "bo", "cy")
	for _, p := range []*peer{ana, bo, cy} {
		live(p)
	}
	body := "hello"
	ask[*wire.Sent](cy, &wire.Send{Conv: conv, Cmid: "1", Body: &body}) // all three follow the conversation from here on
	frame(bo, func(e *wire.Event) bool { return e.Ev.Cmid == "1" })
	frame(ana, func(e *wire.Event) bool { return e.Ev.Cmid == "1" })
	if err := ana.WriteRaw([]byte(`{"t":"typing","conv":"` + conv + `"}`)); err != nil {
		t.Fatal(err)
	}
	if f := frame[*wire.Typing](bo, nil); f.Conv != conv || f.User != "ana" {
		t.Fatalf("%+v", f)
	}
	ask[*wire.Sent](ana, &wire.Send{Conv: conv, Cmid: "2", Body: &body})
	for in := range cy.Frames() { // what was typed before would have come before
		if f, ok := in.Frame.(*wire.Typing); ok {
			t.Fatalf("%+v came to a gateway that does not listen", f)
		}
		if e, ok := in.Frame.(*wire.Event); ok && e.Ev.Cmid == "2" {
			break
		}
	}
}

// A revoked device's socket closes at once on every gateway, whatever the poll.
func TestRevokedOverTwoGateways(t *testing.T) {
	url := pgtest.URL(t)
	seldom := func(c *serveCmd) { c.TailPollMax = time.Minute }
	a, b := serve(t, url, seldom), serve(t, url, seldom)
	poll(t, "both to listen", func() bool { return ready(a) && ready(b) })
	ana := b.connect(t, "ana", "phone")
	status, _ := a.request(t, strings.Repeat("k", 40), http.MethodDelete, "/devices/ana/phone", "", "")
	if status/100 != 2 {
		t.Fatal(status)
	}
	began := time.Now()
	if code := bye(ana); code != posthorn.CodeUnauthenticated {
		t.Fatal(code)
	}
	t.Logf("told after %v", time.Since(began))
}
