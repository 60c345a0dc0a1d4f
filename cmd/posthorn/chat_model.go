package main

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

// chatClient is what the chat needs of the SDK; a *client.Client has it, and so has the fake of the tests.
type chatClient interface {
	State() client.State
	Reconnect()
	Conversations() ([]client.Conversation, error)
	Cursor(conv string) (client.Cursor, bool, error)
	Events(ctx context.Context, conv string, after int64) iter.Seq2[posthorn.Event, error]
	Outbox() []client.Item
	Failed() []client.Item
	Discard(cmid string) error
	Send(ctx context.Context, conv string, m client.Message) (*client.Pending, error)
	Add(ctx context.Context, conv string, users ...string) (*client.Pending, error)
	Remove(ctx context.Context, conv string, users ...string) (*client.Pending, error)
	Leave(ctx context.Context, conv string) (*client.Pending, error)
	OpenConversation(ctx context.Context, n client.NewConversation) (*client.Pending, error)
	History(ctx context.Context, conv string, before int64, limit int) (posthorn.Page, error)
	Members(ctx context.Context, conv, after string, limit int) ([]posthorn.MemberInfo, string, error)
	Typing(conv string)
}

// chatSetup is what a chat is made of.
type chatSetup struct {
	client               chatClient
	feed                 <-chan client.Change // subscribed before the log is read, so that nothing falls in between
	acks                 *chatAcks
	memory               *chatMemory
	user, device, server string
	now                  func() time.Time
	zone                 *time.Location
}

// chatModel is the state of the screen. Everything that lasts is the client's; the model can be built anew from it at any
// time (reload).
type chatModel struct {
	chatSetup
	ctx   context.Context
	theme chatTheme
	state client.State
	err   error // ends the chat: the local store cannot be read or written

	convs   map[string]*chatConv
	order   []*chatConv // as listed: the newest first
	current *chatConv   // nil while there is none
	outbox  []client.Item
	sent    map[string]sentItem // by cmid: answered, while its event is not in the log yet
	opening map[string]bool     // cmids of /new: shown as soon as they are there

	width, height int
	input         textarea.Model
	rows          []string // the current conversation, laid out for the width
	scroll        int      // rows hidden below
	note          string   // one line for the user, until the next key
	noteBad       bool
	panel         string // stands in the place of the messages: help, members
	panelTop      int    // its first row on the screen
	ticking       bool
	told          typist // where it was told lately that this user types
	leaving       bool   // esc was pressed over a draft
}

type sentItem struct {
	client.Item
	seq int64
	at  time.Time
}

func newChatModel(ctx context.Context, setup chatSetup) (*chatModel, error) {
	m := &chatModel{chatSetup: setup, ctx: ctx, theme: newChatTheme(true), state: setup.client.State(), convs: map[string]*chatConv{},
		sent: map[string]sentItem{}, opening: map[string]bool{}, input: newChatInput()}
	m.input.SetStyles(m.theme.input)
	if m.user == "" {
		m.user = m.state.User
	}
	err := m.reload()
	return m, err
}

func newChatInput() textarea.Model {
	in := textarea.New()
	in.Prompt, in.Placeholder, in.ShowLineNumbers = "› ", "Write a message, or /help", false
	in.DynamicHeight, in.MinHeight, in.MaxHeight = true, 1, 6
	in.CharLimit, in.MaxWidth, in.MaxContentHeight = 0, 0, 10_000 // the server's bound on bytes is told when sending
	in.SetVirtualCursor(false)                                    // the terminal's own does not have to be drawn
	in.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	in.Focus()
	return in
}

func (m *chatModel) Init() tea.Cmd {
	return tea.Batch(nextChanges(m.feed), m.acks.next(m.ctx), tea.RequestBackgroundColor)
}

// reload reads everything again: at the start, and where the feed could not keep up.
func (m *chatModel) reload() error {
	known, err := m.client.Conversations()
	if err != nil {
		return err
	}
	for _, k := range known {
		c := m.conv(k.Conv)
		c.entry = k.Entry
		c.acked = max(c.acked, k.Local.Acked, k.Delivered)
		if err := m.reread(c); err != nil {
			return err
		}
	}
	m.readOutbox()
	m.sort()
	if m.current == nil && len(m.order) > 0 {
		m.show(m.order[0])
	}
	return m.err
}

func (m *chatModel) conv(id string) *chatConv {
	c := m.convs[id]
	if c == nil {
		r := m.memory.Convs[id]
		c = &chatConv{id: id, seen: r.Seen, peers: r.Peers, entry: posthorn.Entry{Conv: id}}
		m.convs[id] = c
		m.order = append(m.order, c)
	}
	return c
}

// sort puts the conversation with the newest message first.
func (m *chatModel) sort() {
	slices.SortStableFunc(m.order, func(a, b *chatConv) int {
		if d := b.lastAt().Compare(a.lastAt()); d != 0 {
			return d
		}
		return strings.Compare(a.id, b.id)
	})
}

func (m *chatModel) readOutbox() {
	m.outbox = append(m.client.Outbox(), m.client.Failed()...)
	slices.SortStableFunc(m.outbox, func(a, b client.Item) int { return a.Queued.Compare(b.Queued) })
}
