package main

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

// chatChanges is what has happened at the client since the screen was last drawn.
type chatChanges []client.Change

// changesAtOnce bounds how long the screen stands still while a large sync comes in.
const changesAtOnce = 512

// nextChanges waits for a change and takes what came with it, so that a sync of thousands of events is drawn a few times
// and not thousands.
func nextChanges(feed <-chan client.Change) tea.Cmd {
	return func() tea.Msg {
		ch, ok := <-feed
		batch := chatChanges{ch}
		for ok && len(batch) < changesAtOnce {
			select {
			case ch, ok = <-feed:
				if ok {
					batch = append(batch, ch)
				}
			default:
				return batch
			}
		}
		if !ok && len(batch) == 1 {
			return nil // the client was closed
		}
		return batch
	}
}

func (m *chatModel) changes(batch chatChanges) tea.Cmd {
	var cmds []tea.Cmd
	outbox := false
	for i := range batch {
		ch := &batch[i]
		switch ch.Kind {
		case client.ChangeEvent:
			m.event(&ch.Event)
		case client.ChangeItem, client.ChangeSent:
			outbox = true
			m.item(ch)
		case client.ChangeConv:
			c := m.conv(ch.Conv)
			c.entry, c.acked = ch.Entry, max(c.acked, ch.Entry.Delivered)
			if c.last == nil {
				c.last = lastMessage(&ch.Entry)
			}
		case client.ChangeTyping:
			if c := m.convs[ch.Conv]; c != nil {
				c.types(ch.User, m.now())
				cmds = append(cmds, m.tick())
			}
		case client.ChangeReset:
			if c := m.convs[ch.Conv]; c != nil {
				c.laid, c.acked = nil, 0
				m.fail(m.reread(c))
			}
		case client.ChangeState:
			m.state = ch.State
			if m.user == "" && m.state.User != "" { // a token's user is known from the first welcome on
				m.user = m.state.User
				m.fail(m.reload())
			}
			cmds = append(cmds, m.tick())
		case client.ChangeOverflow:
			m.fail(m.reload())
		}
	}
	if outbox {
		m.readOutbox()
	}
	m.forgetSent()
	m.sort()
	if m.current == nil && len(m.order) > 0 {
		m.show(m.order[0])
	}
	m.sawAll()
	m.layOut(keepPlace)
	return tea.Batch(append(cmds, m.askNames())...)
}

func (m *chatModel) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// event takes what became part of a log. What the window holds already came when it was read.
func (m *chatModel) event(ev *posthorn.Event) {
	c := m.conv(ev.Conv)
	switch {
	case ev.Seq <= c.head:
		return
	case c.head == 0: // only now it is known where the log begins
		m.fail(m.reread(c))
		return
	case c.open:
		c.events = append(c.events, *ev)
	}
	m.learn(c, ev)
}

// item follows what the user asked for.
func (m *chatModel) item(ch *client.Change) {
	it := ch.Item
	switch {
	case ch.Kind == client.ChangeSent && it.Op == client.OpSend:
		// After a lost answer the event may come later than the word that it was sent; the message stays on the screen.
		m.sent[it.Cmid] = sentItem{it, ch.Sent.Seq, ch.Sent.At}
	case ch.Kind == client.ChangeSent && m.opening[it.Cmid]:
		delete(m.opening, it.Cmid)
		m.show(m.conv(ch.Sent.Conv))
	case it.State == client.ItemFailed && it.Op == client.OpOpen:
		// It belongs to no conversation that it could be shown in.
		delete(m.opening, it.Cmid)
		m.complain("the conversation could not be opened: " + refusalText(it.Err))
		m.fail(m.client.Discard(it.Cmid))
	}
}

func (m *chatModel) forgetSent() {
	for cmid, it := range m.sent {
		if c := m.convs[it.Conv]; c != nil && c.head >= it.seq {
			delete(m.sent, cmid)
		}
	}
}

// askNames finds out who is in a conversation that has no title, where the log does not tell.
func (m *chatModel) askNames() tea.Cmd {
	if m.state.Phase != client.Online {
		return nil
	}
	for _, c := range m.order {
		if c.entry.Title != "" || len(c.peers) > 0 || c.namesAsked || c.entry.Left {
			continue
		}
		c.namesAsked = true // one at a time, and once: a name is not worth insisting
		return m.ask(func(ctx context.Context) tea.Msg {
			list, _, err := m.client.Members(ctx, c.id, "", 8)
			return chatMembers{conv: c.id, list: list, err: err, quiet: true}
		})
	}
	return nil
}
