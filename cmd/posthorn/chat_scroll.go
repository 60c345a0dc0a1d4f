package main

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/posthorn/posthorn/client"
)

// scrollBy moves up by so many rows (down: negative), and asks for older messages where it reaches the first row.
func (m *chatModel) scrollBy(by int) tea.Cmd {
	c := m.current
	if m.panel != "" {
		m.panelTop = min(max(m.panelTop-by, 0), max(len(m.panelRows())-m.bodyHeight(), 0))
		return nil
	}
	if c == nil {
		return nil
	}
	most := func() int { return max(len(m.rows)-m.bodyHeight(), 0) }
	if m.scroll+by > most() && !c.top && m.older(c) {
		m.layOut(keepEnd)
	}
	m.scroll = min(max(m.scroll+by, 0), most())
	m.sawAll()
	if by < 0 || m.scroll < most() || c.top || c.asked || c.low > c.start {
		return nil
	}
	if m.state.Phase != client.Online {
		m.complain("older messages are on the server, and there is no connection")
		return nil
	}
	c.asked = true
	m.layOut(keepEnd)
	id, before := c.id, c.low+1
	return m.ask(func(ctx context.Context) tea.Msg {
		p, err := m.client.History(ctx, id, before, windowStep)
		return chatHistory{id, p, err}
	})
}

func (m *chatModel) ask(question func(context.Context) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, askPatience)
		defer cancel()
		return question(ctx)
	}
}

func (m *chatModel) gotHistory(h chatHistory) {
	c := m.convs[h.conv]
	c.asked = false
	if h.err != nil {
		m.complain("older messages could not be fetched: " + whatFailed(h.err))
	} else {
		c.prepend(&h.page)
	}
	if c == m.current {
		m.layOut(keepEnd)
	}
}
