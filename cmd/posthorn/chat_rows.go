package main

import (
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

// Bounds of what one message may take of the screen, and when its sender is named again.
const (
	messageRows = 300
	sameBreath  = 5 * time.Minute
	gutter      = 4 // at the right, for the state of own messages
	quoteCells  = 60
)

type place int

const (
	keepPlace place = iota // what is on the screen stays there, while rows come below it
	keepEnd                // rows come above
	atEnd
)

// layOut makes the rows of the current conversation anew. Long bodies are broken once per width (laid); the rest is
// cheap enough to be done at every change.
func (m *chatModel) layOut(where place) {
	before := len(m.rows)
	m.rows = nil
	if m.current != nil && m.bodyWidth() > gutter {
		m.rows = m.layConversation(m.current)
	}
	switch where {
	case keepPlace:
		if m.scroll > 0 {
			m.scroll += len(m.rows) - before
		}
	case atEnd:
		m.scroll = 0
	}
	m.scroll = min(max(m.scroll, 0), max(len(m.rows)-m.bodyHeight(), 0))
}

func (m *chatModel) layConversation(c *chatConv) []string {
	s := &sheet{m: m, width: m.bodyWidth()}
	switch {
	case c.asked:
		s.system("fetching older messages…")
	case !c.top && c.head > 0:
		s.system("pgup shows older messages")
	}
	own := map[string]bool{} // cmids that are in the log
	marked := c.mark == 0
	for i := range c.events {
		ev := &c.events[i]
		mine := ev.Sender == m.user
		if !marked && ev.Seq > c.mark && !mine {
			marked = true
			s.day(ev.At.In(m.zone))
			s.rule(m.theme.fresh, "new")
		}
		if mine {
			own[ev.Cmid] = true
		}
		s.event(c, ev)
	}
	for _, it := range m.onTheWay(c, own) {
		s.item(it)
	}
	return s.rows
}

// onTheWay is what was written and is not in the log, in the order in which it was written.
func (m *chatModel) onTheWay(c *chatConv, own map[string]bool) []client.Item {
	var items []client.Item
	for cmid, it := range m.sent {
		if it.Conv == c.id && !own[cmid] {
			items = append(items, it.Item)
		}
	}
	for _, it := range m.outbox {
		if _, sent := m.sent[it.Cmid]; it.Conv == c.id && !own[it.Cmid] && !sent {
			items = append(items, it)
		}
	}
	slices.SortStableFunc(items, func(a, b client.Item) int { return a.Queued.Compare(b.Queued) })
	return items
}

func (s *sheet) event(c *chatConv, ev *posthorn.Event) {
	at := ev.At.In(s.m.zone)
	s.day(at)
	if ev.Kind != posthorn.KindMsg {
		s.system(systemText(ev, s.m.user) + at.Format(" · 15:04"))
		return
	}
	if c.laid == nil {
		c.laid = map[int64]laid{}
	}
	l := c.laid[ev.Seq]
	if l.width != s.width {
		l = laid{s.width, s.body(bodyText(ev))}
		c.laid[ev.Seq] = l
	}
	quote := quoteText(c, ev)
	switch {
	case ev.Sender != s.m.user:
		s.theirs(ev.Sender, at, quote, l.lines)
	case c.acked >= ev.Seq:
		s.mine(at, quote, l.lines, stateDelivered)
	default:
		s.mine(at, quote, l.lines, stateSent)
	}
}

// item is a message or request on its way, or one that was refused.
func (s *sheet) item(it client.Item) {
	at := it.Queued.In(s.m.zone)
	s.day(at)
	state := statePending
	if _, ok := s.m.sent[it.Cmid]; ok {
		state = stateSent
	}
	if it.State == client.ItemFailed {
		state = stateFailed
	}
	if it.Op == client.OpSend {
		text := it.Body
		if text == "" {
			text = string(it.Data)
		}
		s.mine(at, "", s.body(clean(text)), state)
	} else {
		s.system(string(state) + " " + string(it.Op) + " " + cleanLine(strings.Join(it.Users, ", ")))
	}
	if state == stateFailed {
		s.sender = ""
		for _, line := range wrapText("refused: "+refusalText(it.Err)+" · /retry or /discard", s.width-gutter) {
			s.rows = append(s.rows, atRight(s.m.theme.bad.Render(line), s.width-gutter))
		}
	}
}

func (s *sheet) theirs(sender string, at time.Time, quote string, lines []string) {
	ink, bold := s.m.theme.sender(sender)
	if s.turn(sender, at) {
		name := bold.Render(fit(cleanLine(sender), s.width/2))
		s.rows = append(s.rows, " "+name+s.m.theme.dim.Render("  "+at.Format("15:04")))
	}
	bar := " " + ink.Render("▎") + " "
	if quote != "" {
		s.rows = append(s.rows, bar+s.m.theme.dim.Render(fit(quote, min(quoteCells, s.width-gutter))))
	}
	for _, line := range lines {
		s.rows = append(s.rows, bar+line)
	}
}

// mine stands at the right; its lines begin at one column, and the states of all have a column of their own at the edge.
func (s *sheet) mine(at time.Time, quote string, lines []string, state msgState) {
	if s.turn(s.m.user, at) {
		s.rows = append(s.rows, atRight(s.m.theme.dim.Render("you  "+at.Format("15:04")), s.width-gutter))
	}
	if quote != "" {
		s.rows = append(s.rows, atRight(s.m.theme.dim.Render(fit(quote, min(quoteCells, s.width-gutter))), s.width-gutter))
	}
	widest := 0
	for _, line := range lines {
		widest = max(widest, lipgloss.Width(line))
	}
	for i, line := range lines {
		row := atRight(atLeft(line, widest), s.width-gutter)
		if i == len(lines)-1 {
			row += " " + s.m.theme.state(state)
		}
		s.rows = append(s.rows, row)
	}
}
