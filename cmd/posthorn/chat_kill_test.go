package main

import (
	"context"
	"io"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/posthorn/posthorn/internal/pgtest"
)

// window is a chat as it runs in a terminal, with a pipe for the keyboard and a screen that is asked for.
type window struct {
	t     *testing.T
	keys  io.Writer
	prog  *tea.Program
	ended chan error
}

// looked is the question what is on the screen.
type looked struct{ answer chan<- string }

type watched struct{ *chatModel }

func (w watched) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if q, ok := msg.(looked); ok {
		q.answer <- (&testChat{chatModel: w.chatModel}).screen()
		return w, nil
	}
	_, cmd := w.chatModel.Update(msg)
	return w, cmd
}

func openWindow(t *testing.T, as, url, store string) *window {
	t.Helper()
	c := &chatCmd{signInFlags: signInFlags{As: as, Server: url, Store: store}}
	acks := newChatAcks()
	cl, path, err := c.open(t.Context(), acks)
	if err != nil {
		t.Fatal(err)
	}
	in, keys := io.Pipe()
	w := &window{t: t, keys: keys, ended: make(chan error, 1)}
	made := make(chan *tea.Program, 1)
	c.program = func(m tea.Model, opts ...tea.ProgramOption) *tea.Program {
		p := tea.NewProgram(watched{m.(*chatModel)}, append(opts, tea.WithInput(in), tea.WithOutput(io.Discard), tea.WithWindowSize(90, 50))...)
		made <- p
		return p
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { w.ended <- c.talk(ctx, cl, acks, loadChatMemory(path+".seen")) }()
	w.prog = <-made
	t.Cleanup(func() {
		cancel() // as a signal does
		if err := <-w.ended; err != nil {
			t.Error(err)
		}
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
		_ = keys.Close()
	})
	return w
}

func (w *window) press(line string) { _, _ = io.WriteString(w.keys, line+"\r") }

func (w *window) screen() string {
	answer := make(chan string, 1)
	w.prog.Send(looked{answer})
	return <-answer
}

// shows waits until each of these is on the screen, once.
func (w *window) shows(texts ...string) {
	w.t.Helper()
	last := ""
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the screen:\n%s", last)
		}
	}()
	for _, text := range texts {
		poll(w.t, text, func() bool {
			last = w.screen()
			_, right, _ := strings.Cut(last, "\n") // the list shows the newest message, too
			n := 0
			for line := range strings.Lines(right) {
				if _, body, ok := strings.Cut(line, "│"); ok {
					line = body
				}
				n += strings.Count(line, text)
			}
			return n == 1
		})
	}
}

// The first promise of the product as two people see it (D1, D2): the server is killed while they write; after its restart
// both have every message, once.
func TestChatSurvivesAKilledServer(t *testing.T) {
	db := pgtest.URL(t)
	p := spawn(t, "--dev", "--database-url", db)
	store := t.TempDir()
	ana, bo := openWindow(t, "ana", p.url, store), openWindow(t, "bo", p.url, store)
	for _, w := range []*window{ana, bo} {
		w.shows("● online", "began this conversation")
	}
	ana.press("before, by ana")
	bo.shows("▎ before, by ana")
	ana.press("while dying, by ana")
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	bo.press("while dying, by bo")
	<-p.exited
	bo.shows("○ offline")
	ana.press("after, by ana")
	bo.press("after, by bo")
	ana.shows("○ offline", "after, by ana ○")
	bo.shows("after, by bo ○")

	spawn(t, "--dev", "--database-url", db, "--listen", strings.TrimPrefix(p.url, "http://"))
	ana.press("/retry") // does not wait for the next attempt
	bo.press("/retry")
	for _, w := range []*window{ana, bo} {
		w.shows("● online")
	}
	ana.shows("before, by ana ✓✓", "while dying, by ana ✓✓", "after, by ana ✓✓", "▎ while dying, by bo", "▎ after, by bo")
	bo.shows("while dying, by bo ✓✓", "after, by bo ✓✓", "▎ before, by ana", "▎ while dying, by ana", "▎ after, by ana")
	for _, w := range []*window{ana, bo} {
		w.shows("before, by ana", "while dying, by ana", "while dying, by bo", "after, by ana", "after, by bo")
	}
}
