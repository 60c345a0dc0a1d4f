package hub

import (
	"testing"
	"testing/synctest"

	"github.com/posthorn/posthorn"
)

// V1: typing is shown to present members of the same conversation, on all their devices, by those who are in it, and not
// more often than once a second.
func TestV1_Typing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.w.open("c", posthorn.Group, "ana", "bo", "cy")
		h.w.open("ch", posthorn.Channel, "ana", "bo")
		ana, twin := h.join("ana", 1), h.join("ana", 2)
		bo, cy, eve := h.join("bo", 3), h.join("cy", 4), h.join("eve", 5)
		for _, s := range []*socket{ana, twin, bo, cy, eve} {
			s.take()
		}
		types := func(s *socket, conv string) bool {
			if !h.MayType(s, conv) {
				return false
			}
			h.Typing(conv, s.viewer.User)
			return true
		}
		if !types(ana, "c") {
			t.Fatal("a member may not")
		}
		h.want(bo, "typing c ana")
		h.want(cy, "typing c ana")
		h.want(ana)
		h.want(twin)
		h.want(eve)
		if types(ana, "c") {
			t.Error("again at once")
		}
		h.sleep(typingAny)
		if types(ana, "c") {
			t.Error("again within a second")
		}
		h.sleep(typingEach)
		if types(eve, "c") || types(eve, "nowhere") || types(ana, "ch") {
			t.Error("a stranger, or in a channel")
		}
		h.tail(h.w.commit("c", posthorn.KindLeave, "cy", "cy"))
		cy.take()
		if types(cy, "c") {
			t.Error("one who has left")
		}
		if !types(ana, "c") {
			t.Error("a second later")
		}
		h.want(cy)
	})
}

// The removal is here and waits for the message before it: who is named by it neither types nor hears of it any more.
func TestV1_TypingWhileALeaveIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.w.open("c", posthorn.Group, "ana", "bo", "cy")
		ana, bo, cy := h.join("ana", 1), h.join("bo", 2), h.join("cy", 3)
		h.say("c", "ana") // not here yet
		h.tail(h.w.commit("c", posthorn.KindLeave, "ana", "bo"))
		for _, s := range []*socket{ana, bo, cy} {
			s.take()
		}
		h.Typing("c", "ana")
		h.want(cy, "typing c ana")
		h.want(bo)
		if h.MayType(bo, "c") {
			t.Error("bo may type")
		}
		h.Typing("c", "bo") // from another gateway that does not know yet
		h.want(ana)
		h.want(cy)
	})
}

// One a second in each conversation, also for somebody who goes to and fro between two.
func TestTypingInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		convs := []string{"c", "d"}
		for _, id := range convs {
			h.w.open(id, posthorn.Group, "ana", "bo")
		}
		ana := h.join("ana", 1)
		passed := map[string]int{}
		for i := range 30 { // three seconds
			if conv := convs[i%2]; h.MayType(ana, conv) {
				passed[conv]++
			}
			h.sleep(typingAny)
		}
		if passed["c"] != 3 || passed["d"] != 3 {
			t.Fatalf("in three seconds passed %v", passed)
		}
		if n := len(h.devices[1].typed); n > int(typingEach/typingAny) {
			t.Fatalf("%d are remembered", n)
		}
	})
}
