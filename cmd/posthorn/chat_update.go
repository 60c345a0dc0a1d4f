package main

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

// What the server is asked for, and the clock.
type (
	chatHistory struct {
		conv string
		page posthorn.Page
		err  error
	}
	chatMembers struct {
		conv  string
		list  []posthorn.MemberInfo
		more  bool
		err   error
		quiet bool // asked for the name only
	}
	chatTick struct{}
)

// askPatience is how long a question may take, waiting for a connection included.
const askPatience = 10 * time.Second

func (m *chatModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.input.SetWidth(max(m.width-1, 4))
		m.layOut(keepPlace)
	case tea.BackgroundColorMsg:
		m.theme = newChatTheme(msg.IsDark())
		m.input.SetStyles(m.theme.input)
		m.layOut(keepPlace)
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case chatChanges:
		cmd = tea.Batch(m.changes(msg), nextChanges(m.feed))
	case chatAcked:
		for conv, delivered := range msg {
			if c := m.convs[conv]; c != nil {
				c.acked = delivered
			}
		}
		m.layOut(keepPlace)
		cmd = m.acks.next(m.ctx)
	case chatHistory:
		m.gotHistory(msg)
	case chatMembers:
		m.gotMembers(msg)
	case chatTick:
		m.ticking = false
		cmd = m.tick()
	default: // pastes and the like
		cmd = m.typed(msg)
	}
	if m.err != nil {
		return m, tea.Quit
	}
	return m, cmd
}

// key does what a key asks for.
func (m *chatModel) key(k tea.KeyPressMsg) tea.Cmd {
	leaving, panel := m.leaving, m.panel != ""
	m.note, m.leaving = "", false
	switch k.String() {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "esc":
		switch {
		case panel:
			m.closePanel()
		case m.input.Value() != "" && !leaving:
			m.leaving = true
			m.say("esc again leaves without sending this")
		default:
			return tea.Quit
		}
	case "tab", "ctrl+n":
		m.move(1)
	case "shift+tab", "ctrl+p":
		m.move(-1)
	case "pgup":
		return m.scrollBy(max(m.bodyHeight()-2, 1))
	case "pgdown":
		return m.scrollBy(-max(m.bodyHeight()-2, 1))
	case "up", "down": // also what a mouse wheel makes on this screen
		if m.input.Height() > 1 {
			return m.typed(k)
		}
		if k.String() == "up" {
			return m.scrollBy(1)
		}
		return m.scrollBy(-1)
	case "enter":
		return m.enter()
	default:
		return m.typed(k)
	}
	return nil
}

// typed gives a message to the input line, which may take another height by it.
func (m *chatModel) typed(msg tea.Msg) (cmd tea.Cmd) {
	before := m.input.Value()
	m.input, cmd = m.input.Update(msg)
	if m.input.Value() != before {
		cmd = tea.Batch(cmd, m.tellTyping())
	}
	return cmd
}

// move goes through the conversations, round and round.
func (m *chatModel) move(by int) {
	n := len(m.order)
	for i, c := range m.order {
		if c == m.current {
			m.show(m.order[(i+by+n)%n])
			m.layOut(atEnd)
			return
		}
	}
}

// tick moves the countdown to the next attempt to connect, and forgets who typed; nothing ticks while there is neither.
func (m *chatModel) tick() tea.Cmd {
	counts := m.state.Phase == client.Offline && !m.state.Next.IsZero()
	if m.ticking || !counts && !m.anybodyTypes() {
		return nil
	}
	m.ticking = true
	return func() tea.Msg {
		t := time.NewTimer(time.Second)
		defer t.Stop()
		select {
		case <-t.C:
			return chatTick{}
		case <-m.ctx.Done():
			return nil
		}
	}
}

func (m *chatModel) say(note string)      { m.note, m.noteBad = note, false }
func (m *chatModel) complain(note string) { m.note, m.noteBad = note, true }

// whatFailed words an error of the client or the server for people.
func whatFailed(err error) string {
	var e *posthorn.Error
	switch {
	case errors.Is(err, client.ErrOutboxFull):
		return "too many messages wait for a connection"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	case errors.As(err, &e):
		return refusalText(e)
	}
	return cleanLine(err.Error())
}

// refusalText names a refusal by its sentence; the code stands behind it for whoever asks for help.
func refusalText(e *posthorn.Error) string {
	return cleanLine(e.Msg + " (" + string(e.Code) + ")")
}
