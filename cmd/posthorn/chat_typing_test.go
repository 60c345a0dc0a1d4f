package main

import (
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

func TestChatShowsWhoTypes(t *testing.T) {
	f := newFakeChat(t)
	f.open("lobby", "Lobby", posthorn.Group, "ana", "bo", "cy", "dan")
	c := newTestChat(t, f, 80, 20)
	now := chatNoon
	c.now = func() time.Time { return now }
	types := func(conv, user string) {
		f.changes <- client.Change{Kind: client.ChangeTyping, Conv: conv, User: user}
		c.settle()
	}
	types("elsewhere", "eve")
	c.shows(0, "typing")
	types("lobby", "b\x1b[31mo")
	types("lobby", "b\x1b[31mo")
	c.shows(1, "is typing…")
	f.msg("lobby", "b\x1b[31mo", "hello")
	c.settle()
	c.shows(0, "typing")
	now = now.Add(time.Second)
	types("lobby", "bo")
	now = now.Add(2 * time.Second)
	types("lobby", "cy")
	c.shows(1, "bo and cy are typing…")
	now = now.Add(3 * time.Second)
	c.ticking = true
	c.Update(chatTick{}) // bo has ceased
	c.shows(1, "cy is typing…")
	for _, u := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		types("lobby", u)
	}
	c.shows(1, "several are typing…")
	if n := len(c.conv("lobby").typing); n != 8 {
		t.Errorf("%d are remembered", n)
	}
	now = now.Add(time.Minute)
	c.Update(chatTick{})
	c.shows(0, "typing")
}

func TestChatTellsThatItTypes(t *testing.T) {
	f := newFakeChat(t)
	f.open("lobby", "Lobby", posthorn.Group, "ana", "bo")
	c := newTestChat(t, f, 80, 20)
	c.press("/he")
	if len(f.typed) != 0 {
		t.Fatal("a command is no message")
	}
	for range 3 {
		c.press("<esc>", "<esc>")
	}
	c.input.SetValue("")
	c.press("hi", "<up>", "<enter>")
	if len(f.typed) != 1 || f.typed[0] != "lobby" {
		t.Fatalf("told %v, want once in a while", f.typed)
	}
	c.now = func() time.Time { return chatNoon.Add(typingEvery) }
	c.press("ho")
	if len(f.typed) != 2 {
		t.Fatalf("told %v, want once more", f.typed)
	}
}
