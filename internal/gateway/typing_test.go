package gateway

import (
	"slices"
	"strings"
	"testing"
)

// Typing is passed on where the hub allows it, and never answered; a push of it takes room or is lost.
func TestTyping(t *testing.T) {
	h := build(t, limits())
	c := h.enter("ada/d")
	s := h.socket("ada")
	c.say(`{"t":"typing","rid":"1","conv":"c"}`)
	c.say(`{"t":"typing","conv":"strange"}`)
	c.say(`{"t":"ping","rid":"p"}`)
	if f := c.want("pong"); f.RID != "p" {
		t.Fatal(f.raw)
	}
	h.log.locked(func() {
		if !slices.Equal(h.log.typed, []string{"c/ada"}) {
			t.Errorf("%q", h.log.typed)
		}
	})
	if !s.PushTyping("c", "bo") {
		t.Error("no room")
	}
	if f := c.want("typing"); f.Conv != "c" || !strings.Contains(f.raw, `"user":"bo"`) {
		t.Fatal(f.raw)
	}
	h.g.Suspend(true)
	if s.PushTyping("c", "bo") {
		t.Error("taken while suspended")
	}
	h.g.Suspend(false)
}
