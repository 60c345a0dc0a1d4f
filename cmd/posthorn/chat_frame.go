package main

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/posthorn/posthorn/client"
)

// head names the conversation, and says what is not on the screen.
func (m *chatModel) head(width int) string {
	c := m.current
	if c == nil {
		return ""
	}
	var hidden []string
	if m.scroll > 0 {
		below := "more below"
		if c.unread > 0 {
			below = fmt.Sprintf("%d new below", c.unread)
		}
		hidden = append(hidden, "↓ "+below)
	}
	if m.sidebar() == 0 {
		elsewhere := 0
		for _, o := range m.order {
			if o != c {
				elsewhere += o.unread
			}
		}
		if elsewhere > 0 {
			hidden = append(hidden, fmt.Sprintf("tab: %d unread", elsewhere))
		}
	}
	for len(hidden) > 0 && lipgloss.Width(strings.Join(hidden, "  ")) > width/2 {
		hidden = hidden[:len(hidden)-1] // the name comes first
	}
	kind := ""
	switch {
	case c.entry.Left:
		kind = "  left"
	case len(c.typing) > 0:
		kind = "  " + typingText(c.typing)
	case c.entry.Kind != "" && len(c.peers) > 0 && c.entry.Title != "":
		kind = "  with " + cleanLine(strings.Join(c.peers, ", "))
	case c.entry.Kind != "":
		kind = "  " + cleanLine(string(c.entry.Kind))
	}
	right := m.theme.fresh.Render(strings.Join(hidden, "  ") + " ")
	name := fit(c.name(), max(width-lipgloss.Width(right)-2, 4))
	kind = fit(kind, width-lipgloss.Width(right)-lipgloss.Width(name)-2)
	return apart(" "+m.theme.strong.Render(name)+m.theme.dim.Render(kind), right, width)
}

// foot tells of the connection, who this is, and what waits.
func (m *chatModel) foot() string {
	mark, text := m.theme.fresh, "○ "
	switch s := m.state; s.Phase {
	case client.Online:
		mark, text = m.theme.good, "● online"
	case client.Connecting:
		text = "◌ connecting…"
	case client.Replaced:
		mark, text = m.theme.bad, "✗ this device is connected elsewhere · /retry takes over"
	case client.Unauthorized:
		mark, text = m.theme.bad, "✗ sign-in refused: "+whyOffline(s.Err)+" · /retry"
	default:
		text += "offline"
		if !s.Next.IsZero() {
			left := max(s.Next.Sub(m.now()), 0).Round(time.Second)
			text += fmt.Sprintf(", retrying in %d s", int(left.Seconds()))
		}
		if why := whyOffline(s.Err); why != "" {
			text += ": " + why
		}
	}
	var right []string
	waiting := 0
	for _, it := range m.outbox {
		if it.State != client.ItemFailed {
			waiting++
		}
	}
	if waiting > 0 {
		right = append(right, fmt.Sprintf("%d waiting", waiting))
	}
	right = append(right, cleanLine(m.user)+" on "+cleanLine(m.device), cleanLine(m.server))
	for len(right) > 1 && lipgloss.Width(text)+lipgloss.Width(strings.Join(right, " · "))+4 > m.width {
		right = right[:len(right)-1]
	}
	return apart(" "+mark.Render(fit(text, m.width-2)), m.theme.dim.Render(strings.Join(right, " · ")+" "), m.width)
}
