package main

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// typingEvery is how often it is told that this user types, typingShown how long others are shown to after the last word.
const (
	typingEvery = 2 * time.Second
	typingShown = 5 * time.Second
)

// typist is somebody who types, or where somebody does, and until when that counts.
type typist struct {
	user  string
	until time.Time
}

// types notes that somebody does. Of a crowd nobody reads the names, so that a few are enough.
func (c *chatConv) types(user string, now time.Time) {
	c.wrote(user)
	if len(c.typing) < 8 {
		c.typing = append(c.typing, typist{user, now.Add(typingShown)})
	}
}

// wrote ends it: the message is there.
func (c *chatConv) wrote(user string) {
	c.typing = slices.DeleteFunc(c.typing, func(t typist) bool { return t.user == user })
}

// anybodyTypes forgets those who have ceased, and tells whether somebody is left.
func (m *chatModel) anybodyTypes() bool {
	left := 0
	for _, c := range m.order {
		c.typing = slices.DeleteFunc(c.typing, func(t typist) bool { return !m.now().Before(t.until) })
		left += len(c.typing)
	}
	return left > 0
}

// typingText names one or two; more are several.
func typingText(who []typist) string {
	names := make([]string, len(who))
	for i := range who {
		names[i] = who[i].user
	}
	slices.Sort(names)
	switch {
	case len(names) == 1:
		return cleanLine(names[0]) + " is typing…"
	case len(names) == 2:
		return cleanLine(strings.Join(names, " and ")) + " are typing…"
	}
	return "several are typing…"
}

// tellTyping tells the others, off the screen's own goroutine since the network may be slow. A command is no message.
func (m *chatModel) tellTyping() tea.Cmd {
	text := m.input.Value()
	if m.current == nil || m.current.entry.Left || text == "" || strings.HasPrefix(text, "/") {
		return nil
	}
	cl, conv, now := m.client, m.current.id, m.now()
	if m.told.user == conv && now.Before(m.told.until) {
		return nil
	}
	m.told = typist{conv, now.Add(typingEvery)}
	return func() tea.Msg {
		cl.Typing(conv)
		return nil
	}
}
