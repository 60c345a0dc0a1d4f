package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"charm.land/lipgloss/v2"
	"pgregory.net/rapid"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

var updateScreens = flag.Bool("update-screens", false, "write the screens of the chat anew")

// everything is a chat with one of each thing that can be shown.
func everything(t *testing.T, width, height int) *testChat {
	f := newFakeChat(t)
	f.open("lobby", "Lobby", posthorn.Group, "ana", "bo", "cy")
	f.open("d1", "", posthorn.Direct, "ana", "cy")
	f.open("g1", "", posthorn.Group, "ana", "bo", "dan")
	yesterday := chatNoon.Add(-24 * time.Hour)
	in := func(conv string) func(*posthorn.Event) {
		return func(ev *posthorn.Event) { ev.Conv = conv }
	}
	say := func(at time.Time, sender, body string, edit ...func(*posthorn.Event)) {
		ev := posthorn.Event{Conv: "lobby", Kind: posthorn.KindMsg, Sender: sender, Body: &body, At: at}
		for _, e := range edit {
			e(&ev)
		}
		f.write(ev)
	}
	say(chatNoon.Add(-2*time.Hour), "cy", "did you see the lobby?\nit is full", in("d1"))
	say(chatNoon.Add(-72*time.Hour), "ana", "日本語のとても長いメッセージ、まだ続く", in("g1"))
	f.logs["lobby"][0].At = yesterday
	say(yesterday, "bo", "Good morning! Is the release out? I would like to tell the others before lunch.")
	say(yesterday.Add(time.Minute), "bo", "…or after it")
	say(yesterday.Add(2*time.Minute), "ana", "soon")
	f.write(posthorn.Event{Conv: "lobby", Kind: posthorn.KindJoin, Sender: "bo", Users: []string{"eve"}, At: yesterday.Add(3 * time.Minute)})
	say(yesterday.Add(time.Hour), "eve", "\x1b[2J\x1b[31mowned\x07 \u202egpj.exe https://example.org/"+strings.Repeat("long/", 12))
	f.write(posthorn.Event{Conv: "lobby", Kind: posthorn.KindLeave, Sender: "ana", Users: []string{"eve"}, At: yesterday.Add(61 * time.Minute)})
	f.write(posthorn.Event{Conv: "lobby", Kind: "poll", Sender: "bo", At: yesterday.Add(62 * time.Minute)})
	say(chatNoon.Add(-time.Hour), "cy", "家族 👨‍👩‍👧 🇩🇪", func(ev *posthorn.Event) { ev.ReplyTo = 2 })
	say(chatNoon.Add(-50*time.Minute), "bo", "", func(ev *posthorn.Event) { ev.Recalled = true })
	say(chatNoon.Add(-40*time.Minute), "ana", "it is out\n\n  * faster\n  * smaller")
	c := newTestChat(t, f, width, height)
	c.update(chatAcked{"lobby": f.convs[0].Local.Seq})
	c.press("this one is refused", "<enter>")
	f.refuse(posthorn.CodeTooLarge, "the body has more than 64 KiB")
	say(chatNoon.Add(-30*time.Minute), "ana", "sent a moment ago")
	c.settle()
	f.state = client.State{Phase: client.Offline, Next: chatNoon.Add(2 * time.Second), Err: posthorn.Errorf(posthorn.CodeShuttingDown, "the server said bye")}
	f.changes <- client.Change{Kind: client.ChangeState, State: f.state}
	c.press("and this one waits", "<enter>", "half written, in\ttwo", "<alt+enter>", "lines")
	return c
}

// The screens as people see them without colours (NO_COLOR): every state has a shape of its own.
func TestChatScreens(t *testing.T) {
	for name, size := range map[string][2]int{"wide": {100, 54}, "narrow": {48, 24}} {
		t.Run(name, func(t *testing.T) {
			got := everything(t, size[0], size[1]).screen()
			path := filepath.Join("testdata", "chat", name+".txt")
			if *updateScreens {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the screen has changed; look at it and write it anew with -update-screens:\n%s", got)
			}
		})
	}
}

// Whatever comes from outside and however wide the screen is: it is filled exactly, and holds nothing that a terminal obeys.
func TestChatScreenIsHarmless(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		evil := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\x1b\x1b[]31mJ;\a\u009b\u202e\u2066\r\n\t 字👨\u200d👩\u0301"))))
		f := newFakeChat(t)
		f.open("lobby", evil.Draw(rt, "title"), posthorn.Group, "ana", evil.Draw(rt, "member"))
		f.open(evil.Draw(rt, "conv")+"-", "", posthorn.Direct, "ana", evil.Draw(rt, "peer"))
		f.state.Err = fmt.Errorf("%s", evil.Draw(rt, "error"))
		width, height := rapid.IntRange(1, 130).Draw(rt, "width"), rapid.IntRange(1, 30).Draw(rt, "height")
		c := newTestChat(t, f, width, height)
		c.theme = chatTheme{} // no escapes of our own
		c.input.SetStyles(c.theme.input)
		for _, kind := range []posthorn.Kind{posthorn.KindMsg, posthorn.KindMsg, posthorn.KindJoin, posthorn.KindLeave, posthorn.KindMeta, posthorn.Kind(evil.Draw(rt, "kind"))} {
			body := evil.Draw(rt, "body")
			f.write(posthorn.Event{Conv: "lobby", Kind: kind, Sender: evil.Draw(rt, "sender"), Body: &body, Users: []string{evil.Draw(rt, "user")},
				Data: fmt.Appendf(nil, `{"title":%q}`, evil.Draw(rt, "data")), ReplyTo: 2})
		}
		c.settle()
		c.update(tea.PasteMsg{Content: evil.Draw(rt, "paste")})
		c.press("<enter>")
		if len(f.outbox) > 0 {
			f.refuse(posthorn.Code(evil.Draw(rt, "code")), evil.Draw(rt, "refusal"))
		}
		c.settle()
		f.changes <- client.Change{Kind: client.ChangeState, State: client.State{Phase: client.Unauthorized, Err: f.state.Err}}
		c.press("draft", "<alt+enter>")
		for _, what := range []string{"messages", "members"} {
			content := c.View().Content
			harmless(t, content)
			lines := strings.Split(content, "\n")
			if len(lines) != height && height >= leastHeight && width >= leastWidth {
				t.Fatalf("%s: %d lines on %d", what, len(lines), height)
			}
			for _, line := range lines {
				if w := lipgloss.Width(line); w > width {
					t.Fatalf("%s: a line of %d cells in %d: %q", what, w, width, line)
				}
			}
			c.openPanel(memberText([]posthorn.MemberInfo{{User: evil.Draw(rt, "user"), Name: evil.Draw(rt, "name"), Role: posthorn.Role(evil.Draw(rt, "role"))}}, true))
		}
	})
}

func BenchmarkChatLayout(b *testing.B) {
	m := &chatModel{theme: newChatTheme(true), width: 120, height: 40, input: newChatInput(), sent: map[string]sentItem{}}
	m.user, m.zone, m.now = "ana", time.UTC, func() time.Time { return chatNoon }
	m.current = &chatConv{id: "c", head: windowMost, open: true}
	for i := range windowMost {
		body := strings.Repeat("some words of a message ", 1+i%5)
		m.current.events = append(m.current.events, posthorn.Event{Conv: "c", Seq: int64(i + 1), Kind: posthorn.KindMsg,
			Sender: []string{"ana", "bo", "bo", "cy"}[i%4], Body: &body, At: chatNoon.Add(time.Duration(i) * time.Minute)})
	}
	for b.Loop() {
		m.layOut(keepPlace)
		_ = m.View()
	}
}
