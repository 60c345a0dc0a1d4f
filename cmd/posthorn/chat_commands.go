package main

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

// commands are what the input line understands besides messages.
var commands = map[string]func(*chatModel, []string) tea.Cmd{
	"help":    func(m *chatModel, _ []string) tea.Cmd { m.openPanel(chatHelp); return nil },
	"quit":    func(*chatModel, []string) tea.Cmd { return tea.Quit },
	"new":     (*chatModel).newConversation,
	"members": func(m *chatModel, _ []string) tea.Cmd { return m.askMembers() },
	"retry":   func(m *chatModel, _ []string) tea.Cmd { m.retry(); return nil },
	"discard": func(m *chatModel, _ []string) tea.Cmd { m.discard(); return nil },
	"add": func(m *chatModel, users []string) tea.Cmd {
		m.change(users, func(c string) error { _, err := m.client.Add(m.ctx, c, users...); return err })
		return nil
	},
	"remove": func(m *chatModel, users []string) tea.Cmd {
		m.change(users, func(c string) error { _, err := m.client.Remove(m.ctx, c, users...); return err })
		return nil
	},
	"leave": func(m *chatModel, _ []string) tea.Cmd {
		m.change([]string{m.user}, func(c string) error { _, err := m.client.Leave(m.ctx, c); return err })
		return nil
	},
}

// enter carries out a command or sends a message. The input is emptied only after the message is on disk: from there on
// nothing short of the disk loses it. That is waited for here, so that messages go in the order in which they were typed.
func (m *chatModel) enter() tea.Cmd {
	text := m.input.Value()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") {
		words := strings.Fields(text[1:])
		if len(words) == 0 || commands[words[0]] == nil {
			m.complain("there is no command " + cleanLine(beginning(text)) + "; /help lists them, // begins a message with /")
			return nil
		}
		m.input.Reset()
		cmd := commands[words[0]](m, words[1:])
		m.layOut(keepPlace)
		return cmd
	}
	if m.current == nil {
		m.complain("there is nobody to send this to: /new NAME begins a conversation")
		return nil
	}
	text = strings.TrimPrefix(text, "/") // of the two that a message begins with where it begins with one
	if _, err := m.client.Send(m.ctx, m.current.id, client.Message{Body: text}); err != nil {
		m.complain("not sent: " + whatFailed(err))
		return nil
	}
	m.input.Reset()
	m.panel = ""
	m.readOutbox()
	m.layOut(atEnd)
	m.sawAll()
	return nil
}

// change asks for a change of who is in the conversation; its outcome is shown among the messages.
func (m *chatModel) change(users []string, ask func(conv string) error) {
	switch {
	case m.current == nil:
		m.complain("there is no conversation")
	case len(users) == 0:
		m.complain("who? Name one or several people")
	default:
		if err := ask(m.current.id); err != nil {
			m.complain(whatFailed(err))
		}
		m.readOutbox()
	}
}

func (m *chatModel) newConversation(users []string) tea.Cmd {
	if len(users) == 0 {
		m.complain("with whom? /new NAME…")
		return nil
	}
	kind := posthorn.Group
	if len(users) == 1 {
		kind = posthorn.Direct
	}
	p, err := m.client.OpenConversation(m.ctx, client.NewConversation{Kind: kind, Members: users})
	if err != nil {
		m.complain(whatFailed(err))
		return nil
	}
	m.opening[p.Cmid] = true
	m.readOutbox()
	if m.state.Phase != client.Online {
		m.say("it is opened when there is a connection")
	}
	return nil
}

// retry queues what was refused once more, as new messages, and ends a wait for the next attempt to connect.
func (m *chatModel) retry() {
	n := 0
	for _, it := range m.failed() {
		var err error
		switch it.Op { // first the new one, so that a crash in between leaves two to choose from, not none
		case client.OpSend:
			_, err = m.client.Send(m.ctx, it.Conv, client.Message{Body: it.Body, Data: it.Data, ReplyTo: it.ReplyTo})
		case client.OpAdd:
			_, err = m.client.Add(m.ctx, it.Conv, it.Users...)
		case client.OpRemove:
			_, err = m.client.Remove(m.ctx, it.Conv, it.Users...)
		case client.OpLeave:
			_, err = m.client.Leave(m.ctx, it.Conv)
		}
		if err == nil {
			err = m.client.Discard(it.Cmid)
		}
		if err != nil {
			m.complain(whatFailed(err))
			break
		}
		n++
	}
	switch {
	case m.state.Phase != client.Online:
		m.client.Reconnect()
	case n == 0 && m.note == "":
		m.say("nothing was refused in this conversation")
	}
	m.readOutbox()
}

func (m *chatModel) discard() {
	items := m.failed()
	for _, it := range items {
		if err := m.client.Discard(it.Cmid); err != nil {
			m.complain(whatFailed(err))
		}
	}
	if len(items) == 0 {
		m.say("nothing was refused in this conversation")
	}
	m.readOutbox()
}

// failed is what was refused in the current conversation.
func (m *chatModel) failed() (items []client.Item) {
	for _, it := range m.outbox {
		if m.current != nil && it.Conv == m.current.id && it.State == client.ItemFailed {
			items = append(items, it)
		}
	}
	return items
}
