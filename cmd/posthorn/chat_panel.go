package main

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

// chatHelp is the panel of /help. Lines are kept short for narrow terminals.
const chatHelp = `
  enter           send
  alt+enter       new line
  tab, shift+tab  next, previous conversation
  pgup, pgdn, ↑ ↓ scroll
  esc             leave

  /new NAME…      talk with one or several people
  /add NAME…      bring people in
  /remove NAME…   take people out
  /leave          leave this conversation
  /members        who is in it
  /retry          what was refused; connect now
  /discard        give up what was refused
  //text          a message that begins with /

  ○   waits on this disk
  ✓   sent: the server has stored it
  ✓✓  delivered: and has this device's receipt for it
  ✗   refused, with the reason
`

func (m *chatModel) openPanel(text string) {
	m.panel, m.panelTop = strings.Trim(text, "\n"), 0
	m.say("esc goes back")
	if len(m.panelRows()) > m.bodyHeight() {
		m.say("pgdn shows the rest, esc goes back")
	}
}

func (m *chatModel) panelRows() []string { return wrapText(m.panel, max(m.bodyWidth()-1, 2)) }

func (m *chatModel) closePanel() {
	m.panel = ""
	m.sawAll()
	m.layOut(atEnd)
}

func (m *chatModel) askMembers() tea.Cmd {
	c := m.current
	switch {
	case c == nil:
		m.complain("there is no conversation")
		return nil
	case m.state.Phase != client.Online:
		m.complain("the server knows who is in it, and there is no connection")
		return nil
	}
	return m.ask(func(ctx context.Context) tea.Msg {
		list, next, err := m.client.Members(ctx, c.id, "", 200)
		return chatMembers{conv: c.id, list: list, more: next != "", err: err}
	})
}

func (m *chatModel) gotMembers(g chatMembers) {
	c := m.convs[g.conv]
	switch {
	case g.quiet:
		for _, p := range g.list {
			m.met(c, p.User)
		}
		m.memory.Convs[c.id] = remembered{Seen: c.seen, Peers: c.peers}
	case g.err != nil:
		m.complain("members: " + whatFailed(g.err))
	case c == m.current:
		m.openPanel(memberText(g.list, g.more))
	}
}

func memberText(list []posthorn.MemberInfo, more bool) string {
	var b strings.Builder
	for _, p := range list {
		line := "  " + cleanLine(p.User)
		if n := cleanLine(p.Name); n != "" && n != cleanLine(p.User) {
			line += " (" + n + ")"
		}
		if p.Role != posthorn.RoleMember {
			line += " · " + cleanLine(string(p.Role))
		}
		b.WriteString(line + "\n")
	}
	if more {
		b.WriteString("  … and more\n")
	}
	return b.String()
}
