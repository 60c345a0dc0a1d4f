package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

// fakeChat is a client without disk and network. Tests move it: write puts an event into a log, answer ends an item.
type fakeChat struct {
	t       *testing.T
	state   client.State
	convs   []client.Conversation
	logs    map[string][]posthorn.Event // what the device holds
	remote  map[string][]posthorn.Event // what only the server holds, below
	members []posthorn.MemberInfo
	outbox  []client.Item
	changes chan client.Change
	sendErr error
	kicked  int
	typed   []string
	items   int
}

// The clock of all screens.
var chatNoon = time.Date(2026, time.March, 4, 12, 30, 0, 0, time.UTC)

func newFakeChat(t *testing.T) *fakeChat {
	return &fakeChat{t: t, state: client.State{Phase: client.Online, User: "ana"}, logs: map[string][]posthorn.Event{},
		remote: map[string][]posthorn.Event{}, changes: make(chan client.Change, 10_000)}
}

// open adds a conversation with its first event.
func (f *fakeChat) open(id, title string, kind posthorn.ConvKind, users ...string) {
	f.convs = append(f.convs, client.Conversation{Entry: posthorn.Entry{Conv: id, Kind: kind, Title: title}, Held: true})
	f.write(posthorn.Event{Conv: id, Kind: posthorn.KindOpen, Sender: "ana", Users: users})
}

// write appends an event. Without a time it is written some minutes before noon.
func (f *fakeChat) write(ev posthorn.Event) posthorn.Event {
	log := f.logs[ev.Conv]
	ev.Seq = int64(len(f.remote[ev.Conv]) + len(log) + 1)
	if ev.At.IsZero() {
		ev.At = chatNoon.Add(-30*time.Minute + time.Duration(ev.Seq)*time.Second)
	}
	f.logs[ev.Conv] = append(log, ev)
	i := slices.IndexFunc(f.convs, func(k client.Conversation) bool { return k.Conv == ev.Conv })
	f.convs[i].Local.Seq = ev.Seq
	f.changes <- client.Change{Kind: client.ChangeEvent, Conv: ev.Conv, Event: ev}
	return ev
}

func (f *fakeChat) msg(conv, sender, body string) posthorn.Event {
	return f.write(posthorn.Event{Conv: conv, Kind: posthorn.KindMsg, Sender: sender, Body: &body, Cmid: fmt.Sprint(conv, len(f.logs[conv]))})
}

// answer ends the oldest item as the server's sent does: with its event, before or after it, or not at all.
func (f *fakeChat) answer(before, after bool) {
	it := f.outbox[0]
	f.outbox = f.outbox[1:]
	event := func() {
		f.write(posthorn.Event{Conv: it.Conv, Kind: posthorn.KindMsg, Sender: "ana", Body: &it.Body, Cmid: it.Cmid, At: it.Queued})
	}
	seq := int64(len(f.logs[it.Conv]) + 1)
	if before {
		event()
	}
	f.changes <- client.Change{Kind: client.ChangeSent, Conv: it.Conv, Item: it, Sent: client.Sent{Conv: it.Conv, Seq: seq}}
	if after {
		event()
	}
}

func (f *fakeChat) refuse(code posthorn.Code, msg string) {
	it := &f.outbox[0]
	it.State, it.Err = client.ItemFailed, posthorn.Errorf(code, "%s", msg)
	f.changes <- client.Change{Kind: client.ChangeItem, Conv: it.Conv, Item: *it}
}

func (f *fakeChat) enqueue(it client.Item) (*client.Pending, error) {
	if f.sendErr != nil {
		return nil, f.sendErr
	}
	f.items++
	it.Cmid, it.Queued, it.State = fmt.Sprint("item-", f.items), chatNoon.Add(time.Duration(f.items)*time.Second), client.ItemPending
	f.outbox = append(f.outbox, it)
	f.changes <- client.Change{Kind: client.ChangeItem, Conv: it.Conv, Item: it}
	return &client.Pending{Cmid: it.Cmid, Conv: it.Conv}, nil
}

func (f *fakeChat) Send(_ context.Context, conv string, m client.Message) (*client.Pending, error) {
	return f.enqueue(client.Item{Op: client.OpSend, Conv: conv, Body: m.Body})
}

func (f *fakeChat) Add(_ context.Context, conv string, users ...string) (*client.Pending, error) {
	return f.enqueue(client.Item{Op: client.OpAdd, Conv: conv, Users: users})
}

func (f *fakeChat) Remove(_ context.Context, conv string, users ...string) (*client.Pending, error) {
	return f.enqueue(client.Item{Op: client.OpRemove, Conv: conv, Users: users})
}

func (f *fakeChat) Leave(_ context.Context, conv string) (*client.Pending, error) {
	return f.enqueue(client.Item{Op: client.OpLeave, Conv: conv})
}

func (f *fakeChat) OpenConversation(_ context.Context, n client.NewConversation) (*client.Pending, error) {
	return f.enqueue(client.Item{Op: client.OpOpen, Users: n.Members, Title: string(n.Kind)})
}

func (f *fakeChat) pick(state client.ItemState) (items []client.Item) {
	for _, it := range f.outbox {
		if it.State == state {
			items = append(items, it)
		}
	}
	return items
}

func (f *fakeChat) State() client.State                           { return f.state }
func (f *fakeChat) Typing(conv string)                            { f.typed = append(f.typed, conv) }
func (f *fakeChat) Reconnect()                                    { f.kicked++ }
func (f *fakeChat) Conversations() ([]client.Conversation, error) { return f.convs, nil }
func (f *fakeChat) Outbox() []client.Item                         { return f.pick(client.ItemPending) }
func (f *fakeChat) Failed() []client.Item                         { return f.pick(client.ItemFailed) }
func (f *fakeChat) Cursor(conv string) (client.Cursor, bool, error) {
	n := int64(len(f.remote[conv]))
	return client.Cursor{Seq: n + int64(len(f.logs[conv])), Start: n}, len(f.logs[conv]) > 0, nil
}

func (f *fakeChat) Discard(cmid string) error {
	f.outbox = slices.DeleteFunc(f.outbox, func(it client.Item) bool { return it.Cmid == cmid })
	return nil
}

func (f *fakeChat) Events(_ context.Context, conv string, after int64) iter.Seq2[posthorn.Event, error] {
	return func(yield func(posthorn.Event, error) bool) {
		for _, ev := range f.logs[conv] {
			if ev.Seq > after && !yield(ev, nil) {
				return
			}
		}
	}
}

func (f *fakeChat) History(_ context.Context, conv string, before int64, limit int) (posthorn.Page, error) {
	if f.state.Phase != client.Online {
		return posthorn.Page{}, errors.New("no connection")
	}
	var p posthorn.Page
	for _, ev := range slices.Backward(f.remote[conv]) {
		if ev.Seq < before {
			p.More = len(p.Events) == limit
			if p.More {
				break
			}
			p.Events = append(p.Events, ev)
		}
	}
	return p, nil
}

func (f *fakeChat) Members(context.Context, string, string, int) ([]posthorn.MemberInfo, string, error) {
	return f.members, "", nil
}

// testChat drives a model without a terminal.
type testChat struct {
	*chatModel
	t *testing.T
	f *fakeChat
}

func newTestChat(t *testing.T, f *fakeChat, width, height int) *testChat {
	t.Helper()
	for len(f.changes) > 0 {
		<-f.changes // from before the chat
	}
	m, err := newChatModel(t.Context(), chatSetup{client: f, feed: f.changes, acks: newChatAcks(), memory: loadChatMemory(""),
		user: "ana", device: "terminal", server: "127.0.0.1:8080", now: func() time.Time { return chatNoon }, zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	m.ticking = true // nobody waits for the countdown
	c := &testChat{m, t, f}
	c.update(tea.WindowSizeMsg{Width: width, Height: height})
	return c
}

// update gives a message to the model and carries out what it asks for, unless that is to wait for more.
func (c *testChat) update(msg tea.Msg) (quits bool) {
	_, cmd := c.Update(msg)
	c.settle()
	if _, waits := msg.(chatAcked); waits {
		return false
	}
	return c.carryOut(cmd)
}

// settle shows what the client has told.
func (c *testChat) settle() {
	var batch chatChanges
	for len(c.f.changes) > 0 {
		batch = append(batch, <-c.f.changes)
	}
	if len(batch) > 0 {
		c.carryOut(c.changes(batch))
	}
}

func (c *testChat) carryOut(cmd tea.Cmd) (quits bool) {
	if cmd == nil {
		return false
	}
	switch msg := cmd().(type) {
	case tea.QuitMsg:
		return true
	case tea.BatchMsg:
		for _, cmd := range msg {
			quits = c.carryOut(cmd) || quits
		}
	case chatHistory, chatMembers:
		return c.update(msg)
	}
	return quits
}

// press types text, or a key in angle brackets.
func (c *testChat) press(keys ...string) (quits bool) {
	named := map[string]tea.KeyPressMsg{
		"<enter>": {Code: tea.KeyEnter}, "<alt+enter>": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "<esc>": {Code: tea.KeyEscape},
		"<tab>": {Code: tea.KeyTab}, "<shift+tab>": {Code: tea.KeyTab, Mod: tea.ModShift}, "<pgup>": {Code: tea.KeyPgUp},
		"<pgdown>": {Code: tea.KeyPgDown}, "<up>": {Code: tea.KeyUp}, "<down>": {Code: tea.KeyDown}, "<ctrl+c>": {Code: 'c', Mod: tea.ModCtrl},
		"<ctrl+n>": {Code: 'n', Mod: tea.ModCtrl},
	}
	for _, k := range keys {
		if msg, ok := named[k]; ok {
			quits = c.update(msg)
			continue
		}
		for _, r := range k {
			quits = c.update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return quits
}

var sgr = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

// screen is what is to be seen, without colours.
func (c *testChat) screen() string {
	var b strings.Builder
	for line := range strings.SplitSeq(sgr.ReplaceAllString(c.View().Content, ""), "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// shows wants each of these so many times on the screen, the list at the left aside.
func (c *testChat) shows(times int, texts ...string) {
	c.t.Helper()
	screen := c.screen()
	right := regexp.MustCompile(`(?m)^.*│`).ReplaceAllString(screen, "")
	for _, text := range texts {
		if n := strings.Count(right, text); n != times {
			c.t.Fatalf("%q is there %d times, want %d:\n%s", text, n, times, screen)
		}
	}
}
