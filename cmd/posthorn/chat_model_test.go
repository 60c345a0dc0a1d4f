package main

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

func twoConversations(t *testing.T) *testChat {
	f := newFakeChat(t)
	f.open("lobby", "Lobby", posthorn.Group, "ana", "bo")
	f.open("d1", "", posthorn.Direct, "ana", "cy")
	f.msg("d1", "cy", "hi ana")
	f.msg("lobby", "bo", "hello all")
	f.msg("lobby", "bo", "anybody?")
	return newTestChat(t, f, 80, 24)
}

// A message is on the screen once, whatever it goes through and in which order that is told.
func TestChatShowsEachMessageOnce(t *testing.T) {
	for name, way := range map[string]struct{ before, after bool }{"event first": {before: true}, "sent first": {after: true}} {
		t.Run(name, func(t *testing.T) {
			c := twoConversations(t)
			c.press("my message")
			c.shows(1, "my message")
			c.press("<enter>")
			c.shows(1, "my message ○", "1 waiting", "Write a message")
			c.f.answer(way.before, way.after)
			for len(c.f.changes) > 0 { // one by one
				c.changes(chatChanges{<-c.f.changes})
				c.shows(1, "my message ✓")
				c.shows(0, "○")
			}
			c.shows(0, "waiting")
			c.update(chatAcked{c.current.id: c.current.head})
			c.shows(1, "my message ✓✓")
		})
	}
}

// After a lost answer the message may be known as sent long before its event comes back.
func TestChatKeepsWhatWasSentUntilItsEventCame(t *testing.T) {
	c := twoConversations(t)
	c.press("lost answer", "<enter>")
	it := c.f.outbox[0]
	c.f.answer(false, false)
	c.settle()
	c.shows(1, "lost answer ✓")
	c.f.write(posthorn.Event{Conv: it.Conv, Kind: posthorn.KindMsg, Sender: "ana", Body: &it.Body, Cmid: it.Cmid, At: it.Queued})
	c.settle()
	c.shows(1, "lost answer ✓")
	if len(c.sent) != 0 {
		t.Errorf("still kept: %v", c.sent)
	}
}

func TestChatRefusedMessages(t *testing.T) {
	c := twoConversations(t)
	c.press("no way", "<enter>")
	c.f.refuse(posthorn.CodeNotMember, "you are not \x1b[31m in it")
	c.settle()
	c.shows(1, "no way ✗", "refused: you are not ␛[31m in it (NOT_MEMBER)")
	c.shows(0, "waiting")
	c.press("/retry", "<enter>")
	c.shows(1, "no way ○")
	c.shows(0, "✗", "refused")
	c.f.refuse(posthorn.CodeForbidden, "no")
	c.settle()
	c.press("/discard", "<enter>")
	c.shows(0, "no way", "✗")
	c.press("/discard", "<enter>")
	c.shows(1, "nothing was refused")
	if len(c.f.outbox) != 0 {
		t.Errorf("the outbox holds %v", c.f.outbox)
	}
}

func TestChatUnreadAndDrafts(t *testing.T) {
	c := twoConversations(t)
	if c.current.id != "lobby" {
		t.Fatalf("opens with %s, not with the newest", c.current.id)
	}
	if d := c.convs["d1"]; d.unread != 1 || c.current.unread != 0 {
		t.Fatalf("unread: %d and %d", d.unread, c.current.unread)
	}
	c.press("half a thou", "<tab>")
	c.shows(1, "cy  direct")
	c.shows(0, "half a thou")
	if d := c.convs["d1"]; d.unread != 0 {
		t.Fatalf("unread after a look: %d", d.unread)
	}
	c.f.msg("lobby", "bo", "first new one")
	c.f.msg("lobby", "ana", "from my phone")
	c.f.msg("lobby", "bo", "last new one")
	c.settle()
	if l := c.convs["lobby"]; l.unread != 2 || c.order[0] != l {
		t.Fatalf("unread %d, order %v", l.unread, c.order[0].id)
	}
	c.press("<ctrl+n>")
	c.shows(1, "─ new ─", "› half a thou")
	if s := c.screen(); strings.Index(s, "anybody?") > strings.Index(s, "─ new ─") || strings.Index(s, "─ new ─") > strings.Index(s, "first new one") {
		t.Fatalf("the mark is not before the first new message:\n%s", s)
	}
	c.press("<shift+tab>", "<shift+tab>")
	c.shows(0, "─ new ─")
	if got := c.memory.Convs["lobby"].Seen; got != 6 {
		t.Errorf("seen up to %d is remembered", got)
	}
}

// What is on the screen stays there when rows come below and above it.
func TestChatScrolling(t *testing.T) {
	f := newFakeChat(t)
	f.open("c", "Long", posthorn.Group, "ana", "bo")
	for i := range 900 {
		f.msg("c", "bo", fmt.Sprintf("message %03d.", i))
	}
	f.remote["c"], f.logs["c"] = f.logs["c"][:400], f.logs["c"][400:] // the device began at the tail
	c := newTestChat(t, f, 80, 24)
	c.shows(1, "message 899.")
	if n := len(c.current.events); n != windowStep {
		t.Fatalf("%d events were read", n)
	}
	c.press("<pgup>")
	c.shows(1, "more below")
	seen := c.screen()
	f.msg("c", "bo", "message new.")
	c.settle()
	if now := c.screen(); strings.Split(now, "\n")[10] != strings.Split(seen, "\n")[10] {
		t.Fatalf("moved:\n%s\n%s", seen, now)
	}
	c.shows(1, "1 new below")
	for i := range 200 {
		if c.press("<pgup>"); c.current.top {
			break
		}
		if i == 199 {
			t.Fatal("the top is never reached")
		}
	}
	for range 60 {
		c.press("<pgup>")
	}
	c.shows(1, "you began this conversation with bo", "message 000.")
	seqs := map[int64]bool{}
	for i, ev := range c.current.events {
		if seqs[ev.Seq] || ev.Seq != int64(i+1) {
			t.Fatalf("event %d is seq %d", i, ev.Seq)
		}
		seqs[ev.Seq] = true
	}
	for range 100 {
		c.press("<pgdown>")
	}
	c.shows(1, "message new.")
	c.shows(0, "below")
	if c.current.unread != 0 {
		t.Errorf("unread: %d", c.current.unread)
	}
	c.press("<up>", "<up>", "<down>")
	if c.scroll != 1 {
		t.Errorf("the wheel scrolled by %d", c.scroll)
	}
}

func TestChatHistoryNeedsAConnection(t *testing.T) {
	f := newFakeChat(t)
	f.open("c", "Long", posthorn.Group, "ana", "bo")
	f.remote["c"] = f.logs["c"]
	f.logs["c"] = nil
	f.msg("c", "bo", "hello")
	f.state.Phase = client.Offline
	c := newTestChat(t, f, 80, 24)
	c.press("<pgup>")
	c.shows(1, "no connection", "hello")
}

func TestChatCommands(t *testing.T) {
	c := twoConversations(t)
	for _, tc := range []struct{ line, want string }{
		{"/new bo", "open  [bo] direct"},
		{"/new bo cy", "open  [bo cy] group"},
		{"/add cy dan", "add lobby [cy dan] "},
		{"/remove bo", "remove lobby [bo] "},
		{"/leave", "leave lobby [] "},
		{"//slash", "send lobby [] "},
		{"plain", "send lobby [] "},
	} {
		c.f.outbox = nil
		c.press(tc.line, "<enter>")
		if it := c.f.outbox; len(it) != 1 || fmt.Sprint(it[0].Op, " ", it[0].Conv, " ", it[0].Users, " ", it[0].Title) != tc.want {
			t.Errorf("%s: %+v, want %s", tc.line, it, tc.want)
		}
	}
	c.f.outbox = nil
	for _, line := range []string{"/new", "/add", "/remove", "/nonsense", "/"} {
		c.press(line, "<enter>")
		if len(c.f.outbox) != 0 || c.note == "" {
			t.Errorf("%s: %v, note %q", line, c.f.outbox, c.note)
		}
		c.input.Reset()
	}
	c.press("/help", "<enter>")
	c.shows(1, "/members", "pgdn shows the rest")
	c.press("<pgdown>")
	c.shows(1, "✓✓  delivered")
	c.press("<esc>")
	c.shows(0, "/members")
	c.f.members = []posthorn.MemberInfo{{User: "ana", Name: "Ana", Role: posthorn.RoleOwner}, {User: "b\x1bo", Role: posthorn.RoleMember}}
	c.press("/members", "<enter>")
	c.shows(1, "ana (Ana) · owner", "b␛o")
	c.press("<esc>")
	c.press("one", "<alt+enter>", "two")
	c.shows(1, "› one", "› two")
	c.press("<enter>")
	if got := c.f.outbox[0].Body; got != "one\ntwo" {
		t.Errorf("sent %q", got)
	}
}

// What /new opened comes to the front when it is there; what could not be opened is said, and nothing is left of it.
func TestChatNewConversation(t *testing.T) {
	c := twoConversations(t)
	c.press("/new dan", "<enter>")
	it := c.f.outbox[0]
	c.f.outbox = nil
	c.f.changes <- client.Change{Kind: client.ChangeSent, Conv: "d2", Item: it, Sent: client.Sent{Conv: "d2", Seq: 1}}
	c.settle()
	c.f.changes <- client.Change{Kind: client.ChangeConv, Conv: "d2", Entry: posthorn.Entry{Conv: "d2", Kind: posthorn.Direct}}
	c.f.open("d2", "", posthorn.Direct, "ana", "dan")
	c.settle()
	c.shows(1, "dan  direct", "you began this conversation with dan")
	c.press("/new nobody", "<enter>")
	c.f.refuse(posthorn.CodeNotFound, "no such user: nobody")
	c.settle()
	c.shows(1, "could not be opened: no such user")
	if len(c.f.outbox) != 0 {
		t.Errorf("left over: %v", c.f.outbox)
	}
}

func TestChatKeepsWhatCannotBeSent(t *testing.T) {
	c := twoConversations(t)
	c.f.sendErr = client.ErrOutboxFull
	c.press("precious", "<enter>")
	c.shows(1, "› precious", "not sent: too many messages wait")
	if c.press("<esc>") {
		t.Fatal("one esc leaves, with a draft")
	}
	c.shows(1, "› precious", "esc again")
	if !c.press("<esc>") {
		t.Fatal("the second esc does not leave")
	}
	c = twoConversations(t)
	if !c.press("<esc>") || !c.press("<ctrl+c>") || !c.press("/quit", "<enter>") {
		t.Fatal("does not leave")
	}
}

func TestChatConnection(t *testing.T) {
	c := twoConversations(t)
	c.shows(1, "● online", "ana on terminal · 127.0.0.1:8080")
	tell := func(s client.State) {
		c.f.state = s
		c.Update(chatChanges{{Kind: client.ChangeState, State: s}})
	}
	tell(client.State{Phase: client.Offline, Next: chatNoon.Add(3_000_000_000), Err: posthorn.Errorf(posthorn.CodeUnavailable, "the database is \x1b[5maway")})
	c.shows(1, "○ offline, retrying in 3 s: the database is ␛[5maway")
	c.press("/retry", "<enter>")
	if c.f.kicked != 1 {
		t.Error("/retry does not connect")
	}
	tell(client.State{Phase: client.Connecting})
	c.shows(1, "◌ connecting…")
	tell(client.State{Phase: client.Replaced})
	c.shows(1, "connected elsewhere")
	tell(client.State{Phase: client.Unauthorized, Err: &refusedSignIn{"no"}})
	c.shows(1, "sign-in refused: no")
}

// A feed that could not keep up, and a history that was rewound, are read anew.
func TestChatReadsAnew(t *testing.T) {
	c := twoConversations(t)
	c.f.msg("lobby", "bo", "one that was missed")
	for len(c.f.changes) > 0 {
		<-c.f.changes
	}
	c.f.changes <- client.Change{Kind: client.ChangeOverflow}
	c.settle()
	c.shows(1, "one that was missed", "anybody?")
	c.f.logs["lobby"] = c.f.logs["lobby"][:2]
	c.f.changes <- client.Change{Kind: client.ChangeReset, Conv: "lobby"}
	c.settle()
	c.shows(0, "one that was missed", "anybody?")
	c.f.msg("lobby", "bo", "another past")
	c.settle()
	c.shows(1, "another past", "▎ hello all")
}

func TestChatPaste(t *testing.T) {
	c := twoConversations(t)
	c.update(tea.PasteMsg{Content: "a\x1b[31m\nb\n" + strings.Repeat("line\n", 100)})
	if c.press("<enter>"); len(c.f.outbox) != 1 || strings.Count(c.f.outbox[0].Body, "\n") < 100 {
		t.Fatalf("sent: %v", c.f.outbox)
	}
}
