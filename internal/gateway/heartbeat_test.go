package gateway

import (
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

func beats(l *posthorn.Limits) { l.Heartbeat, l.MissedBeats = 150*time.Millisecond, 2 }

// TestHeartbeat_SilenceEnds: a peer that answers no ping is closed after Heartbeat × (1 + MissedBeats), not before; one
// that answers, or says anything, lives.
func TestHeartbeat_SilenceEnds(t *testing.T) {
	h := build(t, limits(beats))
	mute := h.raw()
	mute.upgrade()
	began := time.Now()
	mute.say(`{"t":"hello","rid":"h","token":"mute/d","device":"d"}`)

	pinger := h.raw() // answers nothing, but pings
	pinger.upgrade()
	pinger.say(`{"t":"hello","rid":"h","token":"pinger/d","device":"d"}`)

	answers := h.enter("answers/d")
	done := make(chan error, 1)
	go func() { // reading answers pings
		f, err := answers.read()
		if err == nil && f.T != "pong" {
			t.Errorf("got %s", f.raw)
		}
		done <- err
	}()

	pings := 0
	for {
		op, payload, err := mute.next()
		if err != nil {
			t.Fatal(err)
		}
		if op == 9 {
			pings++
		}
		if op == 8 {
			if string(payload[2:]) != "no heartbeat" {
				t.Errorf("closed: %q", payload)
			}
			break
		}
		if err := pinger.write(rawFrame(fin|9, []byte("alive"))); err != nil {
			t.Fatal(err)
		}
	}
	if d := time.Since(began); d < 450*time.Millisecond {
		t.Errorf("closed after %s", d)
	}
	if pings == 0 {
		t.Error("no ping before the close")
	}
	pongs := 0
	for pongs == 0 {
		op, payload, err := pinger.next()
		if err != nil {
			t.Fatal(err)
		}
		if op == 10 {
			pongs++
			if string(payload) != "alive" {
				t.Errorf("pong %q", payload)
			}
		}
	}
	eventually(t, "one is counted", func() bool { return h.g.Stats().SilentClosed == 1 })
	answers.say(`{"t":"ping","rid":"1"}`)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestHeartbeat_SlowMessageIsLife: bytes of one long message count, since no pong can come between them.
func TestHeartbeat_SlowMessageIsLife(t *testing.T) {
	h := build(t, limits(beats))
	p := h.raw()
	p.upgrade()
	p.say(`{"t":"hello","rid":"h","token":"ada/d","device":"d"}`)
	eventually(t, "welcome", func() bool { return h.g.Stats().Sessions == 1 })
	b := rawFrame(fin|text, []byte(`{"t":"ping","rid":"slow","pad":"xxxxxxxxxxxxxxxxxxxxxxxxxx"}`))
	if len(b) < 60 {
		t.Fatal("too short")
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range b { // 600 ms, the bound is 450
		<-tick.C
		if err := p.write(b[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	for {
		op, payload, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		if op == 1 && parse(t, payload).T == "pong" {
			return
		}
	}
}
