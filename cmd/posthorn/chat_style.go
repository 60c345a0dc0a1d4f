package main

import (
	"hash/fnv"

	"charm.land/bubbles/v2/textarea"
	"charm.land/lipgloss/v2"
)

// msgState is where an own message stands, as the mark that shows it. The marks differ in shape, since colours may be off
// (NO_COLOR) or not be seen.
type msgState string

const (
	statePending   msgState = "○"  // in the outbox, on disk
	stateSent      msgState = "✓"  // committed by the server
	stateDelivered msgState = "✓✓" // and the server knows that this device's log holds it without a hole
	stateFailed    msgState = "✗"  // refused for good
)

// chatTheme is every style of the screen. The zero value has none.
type chatTheme struct {
	dim, strong, bad, good, fresh, count, line, accent lipgloss.Style
	people                                             []lipgloss.Style
	input                                              textarea.Styles
}

// newChatTheme takes colours of the 256 that are readable on a dark or a light ground. The renderer takes them down to
// what the terminal has, to none under NO_COLOR.
func newChatTheme(dark bool) chatTheme {
	pick := lipgloss.LightDark(dark)
	ink := func(onLight, onDark string) lipgloss.Style {
		return lipgloss.NewStyle().Foreground(pick(lipgloss.Color(onLight), lipgloss.Color(onDark)))
	}
	t := chatTheme{
		dim:    ink("243", "245"),
		strong: lipgloss.NewStyle().Bold(true),
		bad:    ink("160", "203"),
		good:   ink("28", "78"),
		fresh:  ink("166", "215"),
		count:  ink("166", "215").Bold(true),
		line:   ink("250", "238"),
		accent: ink("25", "75").Bold(true),
	}
	for _, c := range [][2]string{{"25", "75"}, {"91", "177"}, {"130", "215"}, {"29", "79"}, {"125", "211"}, {"94", "180"}, {"24", "110"}, {"64", "149"}} {
		t.people = append(t.people, ink(c[0], c[1]))
	}
	state := textarea.StyleState{Prompt: t.accent, Placeholder: t.dim, Selection: lipgloss.NewStyle().Reverse(true)}
	t.input = textarea.Styles{Focused: state, Blurred: state}
	return t
}

// sender gives everybody a colour that stays theirs, for the bar beside their messages and for their name.
func (t chatTheme) sender(user string) (bar, name lipgloss.Style) {
	if len(t.people) == 0 {
		return bar, name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(user))
	ink := t.people[h.Sum32()%uint32(len(t.people))]
	return ink, ink.Bold(true)
}

func (t chatTheme) state(s msgState) string {
	switch s {
	case stateFailed:
		return t.bad.Render(string(s))
	case statePending:
		return t.fresh.Render(string(s))
	case stateDelivered:
		return t.good.Render(string(s))
	}
	return t.dim.Render(string(s))
}
