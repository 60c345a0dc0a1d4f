package main

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
)

// list is the conversations at the left: two rows each, with one between.
func (m *chatModel) list(width, tall int) []string {
	rows := make([]string, tall)
	if width == 0 {
		return rows
	}
	const each = 3
	first := 0 // the one that is shown is always on the screen
	for i, c := range m.order {
		if c == m.current {
			first = max(i-max(tall/each, 1)+1, 0)
		}
	}
	for i, c := range m.order[first:] {
		if at := i * each; at+1 < tall {
			rows[at], rows[at+1] = m.listed(c, width)
		}
	}
	return rows
}

func (m *chatModel) listed(c *chatConv, width int) (name, preview string) {
	edge := "  "
	title, style := c.name(), m.theme.strong
	if c == m.current {
		edge, style = m.theme.accent.Render("▌")+" ", m.theme.accent
	}
	badge := ""
	switch {
	case c.unread > 99:
		badge = "99+"
	case c.unread > 0:
		badge = fmt.Sprint(c.unread)
	case c.last != nil:
		badge = m.when(c.last.At)
	}
	room := width - 2 - lipgloss.Width(badge) - 2
	look := m.theme.dim
	if c.unread > 0 {
		look = m.theme.count
	}
	name = edge + apart(style.Render(fit(title, room)), look.Render(badge), width-3)
	text := "no messages"
	switch {
	case c.entry.Left:
		text = "left"
	case c.last != nil && c.last.Sender == m.user:
		text = "you: " + previewText(c.last)
	case c.last != nil && c.named() && len(c.peers) > 1:
		text = cleanLine(c.last.Sender) + ": " + previewText(c.last)
	case c.last != nil:
		text = previewText(c.last)
	}
	return name, edge + m.theme.dim.Render(fit(text, width-3))
}

// named tells whether the name does not say already who writes.
func (c *chatConv) named() bool { return strings.TrimSpace(c.entry.Title) != "" || len(c.peers) != 1 }

// when is the hour of what came today, and the day of everything else.
func (m *chatModel) when(at time.Time) string {
	at = at.In(m.zone)
	if at.Format(time.DateOnly) == m.now().In(m.zone).Format(time.DateOnly) {
		return at.Format("15:04")
	}
	return at.Format("2 Jan")
}
