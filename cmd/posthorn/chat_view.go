package main

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/posthorn/posthorn/client"
)

// The screen, from above: a head line, a rule, the list at the left and the messages at the right, a rule, perhaps a
// note, the input line, the state of the connection.
const (
	leastWidth   = 24 // below it nothing can be shown that makes sense
	leastHeight  = 8
	sidebarFrom  = 60 // narrower terminals do without the list
	sidebarWidth = 28
)

func (m *chatModel) sidebar() int {
	if m.width < sidebarFrom {
		return 0
	}
	return min(sidebarWidth, m.width/3)
}

// bodyWidth is the width of the messages.
func (m *chatModel) bodyWidth() int {
	if s := m.sidebar(); s > 0 {
		return m.width - s - 1
	}
	return m.width
}

// bodyHeight is the height of the list and the messages.
func (m *chatModel) bodyHeight() int {
	h := m.height - 4 - m.input.Height()
	if m.note != "" {
		h--
	}
	return max(h, 1)
}

func (m *chatModel) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	switch {
	case m.width == 0:
		return v // the size comes with the first message
	case m.width < leastWidth || m.height < leastHeight:
		v.SetContent(fit("too small", m.width))
		return v
	}
	side, wide, tall := m.sidebar(), m.bodyWidth(), m.bodyHeight()
	var b strings.Builder
	row := func(left, right string) {
		if side > 0 {
			b.WriteString(atLeft(left, side) + m.theme.line.Render("│"))
		}
		b.WriteString(atLeft(right, wide) + "\n")
	}
	rule := func(joint string) {
		line := strings.Repeat("─", wide)
		if side > 0 {
			line = strings.Repeat("─", side) + joint + line
		}
		b.WriteString(m.theme.line.Render(line) + "\n")
	}
	row(m.theme.accent.Render(" posthorn"), m.head(wide))
	rule("┼")
	list, body := m.list(side, tall), m.body(tall)
	for i := range tall {
		row(list[i], body[i])
	}
	rule("┴")
	if m.note != "" {
		style := m.theme.fresh
		if m.noteBad {
			style = m.theme.bad
		}
		b.WriteString(atLeft(style.Render(fit(" "+m.note, m.width)), m.width) + "\n")
	}
	if c := m.input.Cursor(); c != nil {
		c.X, c.Y = c.X+1, c.Y+strings.Count(b.String(), "\n")
		v.Cursor = c
	}
	for line := range strings.SplitSeq(m.input.View(), "\n") {
		b.WriteString(" " + line + "\n")
	}
	b.WriteString(m.foot())
	v.SetContent(b.String())
	return v
}

// body is the part of the rows that is on the screen, or the panel. Few messages stand at the bottom, near the input.
func (m *chatModel) body(tall int) []string {
	out := make([]string, tall)
	if m.panel != "" {
		rows := m.panelRows()
		copy(out, rows[min(m.panelTop, max(len(rows)-tall, 0)):])
		return out
	}
	rows := m.rows
	if len(rows) == 0 {
		rows = []string{atCentre(m.theme.dim.Render(fit(m.nothing(), m.bodyWidth())), m.bodyWidth())}
	}
	end := len(rows) - min(m.scroll, max(len(rows)-tall, 0))
	rows = rows[max(end-tall, 0):end]
	copy(out[tall-len(rows):], rows)
	return out
}

// nothing says why there is nothing to see.
func (m *chatModel) nothing() string {
	switch {
	case m.current != nil:
		return "no messages yet"
	case m.state.Phase == client.Online:
		return "no conversations yet: /new NAME begins one"
	}
	return "conversations come with a connection"
}
