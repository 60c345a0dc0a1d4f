package main

import (
	"slices"
	"strings"
	"time"

	"github.com/posthorn/posthorn"
)

// A conversation on the screen is a window on its log: a stretch without a hole that ends at the newest event. It is read
// when the conversation is first shown and grows upwards on demand.
const (
	windowStep = 200  // events read at once
	windowMost = 1000 // a window that has grown to more is cut back to windowStep when its end is looked at
)

type chatConv struct {
	id    string
	entry posthorn.Entry
	start int64 // the log holds nothing at or below it
	head  int64 // newest event of the log
	acked int64 // the server knows that this device holds everything up to here

	open   bool             // the window was read
	events []posthorn.Event // everything in (low, head]
	low    int64
	top    bool // nothing lies below low
	asked  bool // the server is being asked for what does
	laid   map[int64]laid

	last       *posthorn.Event // newest message
	seen       int64           // newest event that was on the screen
	unread     int             // messages of others after it
	mark       int64           // what was unread when it was opened begins after it; 0: nothing
	peers      []string        // who else is in it, as far as the log tells
	namesAsked bool            // the server was asked for them
	draft      string
	typing     []typist
}

// laid keeps a message's broken lines: most of the work of a layout.
type laid struct {
	width int
	lines []string
}

func (c *chatConv) lastAt() time.Time {
	if c.last != nil {
		return c.last.At
	}
	return c.entry.LastAt
}

// name is what people call it: the title, or who else is in it.
func (c *chatConv) name() string {
	if t := cleanLine(c.entry.Title); t != "" {
		return t
	}
	switch peers := cleanLine(strings.Join(c.peers, ", ")); {
	case peers == "":
	case c.entry.Kind == posthorn.Direct:
		return peers
	default: // not to be taken for the direct one
		return peers + " and you"
	}
	return cleanLine(c.id)
}

// reread takes a conversation from the local log: how far it reaches, what is new in it, and its window where it has one.
func (m *chatModel) reread(c *chatConv) error {
	cur, held, err := m.client.Cursor(c.id)
	if err != nil {
		return err
	}
	if !held {
		cur.Seq, cur.Start = 0, 0
	}
	c.head, c.start, c.seen = cur.Seq, cur.Start, min(c.seen, cur.Seq)
	c.events, c.top, c.unread, c.last = nil, false, 0, lastMessage(&c.entry)
	c.low = max(c.start, c.head-windowStep)
	for ev, err := range m.client.Events(m.ctx, c.id, c.low) {
		if err != nil {
			return err
		}
		c.events = append(c.events, ev)
		m.learn(c, &ev)
	}
	if !c.open {
		c.events, c.low = nil, 0
	}
	c.top = c.open && c.low == 0
	return nil
}

// learn notes what an event tells apart from its text.
func (m *chatModel) learn(c *chatConv, ev *posthorn.Event) {
	c.head = max(c.head, ev.Seq)
	switch ev.Kind {
	case posthorn.KindMsg:
		c.last = ev
		c.wrote(ev.Sender)
		if c.entry.Kind == posthorn.Direct {
			m.met(c, ev.Sender) // the first event, which names both, may lie below the log
		}
		if ev.Seq > c.seen && ev.Sender != m.user {
			c.unread++
		}
	case posthorn.KindOpen, posthorn.KindJoin:
		for _, u := range ev.Users {
			m.met(c, u)
		}
	case posthorn.KindLeave:
		c.peers = slices.DeleteFunc(c.peers, func(u string) bool { return slices.Contains(ev.Users, u) })
	}
}

func (m *chatModel) met(c *chatConv, user string) {
	if user != m.user && !slices.Contains(c.peers, user) {
		c.peers = append(c.peers, user)
	}
}

// lastMessage is the newest message as the server told it, for a log that holds none. Other events are no preview.
func lastMessage(e *posthorn.Entry) *posthorn.Event {
	if e.Last != nil && e.Last.Kind == posthorn.KindMsg {
		return e.Last
	}
	return nil
}

// show brings a conversation onto the screen.
func (m *chatModel) show(c *chatConv) {
	if m.current != nil {
		m.current.draft = m.input.Value()
		m.current.mark = 0
	}
	m.current, m.scroll, m.panel, c.mark = c, 0, "", 0
	m.input.SetValue(c.draft)
	if c.unread > 0 {
		c.mark = c.seen
	}
	if !c.open {
		c.open = true
		if err := m.reread(c); err != nil {
			m.err = err
		}
	}
	m.sawAll()
}

// sawAll: the end of the current conversation is on the screen.
func (m *chatModel) sawAll() {
	c := m.current
	if c == nil || m.scroll > 0 || m.panel != "" {
		return
	}
	c.seen, c.unread = c.head, 0
	if len(c.events) > windowMost {
		c.events = slices.Clone(c.events[len(c.events)-windowStep:])
		c.low, c.top, c.laid = c.events[0].Seq-1, false, nil
	}
	m.memory.Convs[c.id] = remembered{Seen: c.seen, Peers: c.peers}
}

// older lets the window grow from the local log; false where that has nothing more.
func (m *chatModel) older(c *chatConv) bool {
	if c.low <= c.start {
		return false
	}
	low := max(c.start, c.low-windowStep)
	var more []posthorn.Event
	for ev, err := range m.client.Events(m.ctx, c.id, low) {
		if err != nil {
			m.err = err
			return false
		}
		if ev.Seq > c.low {
			break
		}
		more = append(more, ev)
	}
	c.events, c.low = append(more, c.events...), low
	c.top = low == 0
	return true
}

// prepend adds a page of history, which comes newest first, below the window.
func (c *chatConv) prepend(p *posthorn.Page) {
	var more []posthorn.Event
	for _, ev := range slices.Backward(p.Events) {
		if ev.Seq <= c.low {
			more = append(more, ev)
		}
	}
	if len(more) > 0 {
		c.low = more[0].Seq - 1
	}
	c.events = append(more, c.events...)
	c.top = !p.More || len(p.Events) == 0
}
