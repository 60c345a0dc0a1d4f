package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
)

// lineBook is what tail wrote.
type lineBook struct {
	mu    sync.Mutex
	b     bytes.Buffer
	after int // writes that succeed; 0: all
}

func (l *lineBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(p) > 0 && l.after > 0 {
		if l.after--; l.after == 0 {
			return 0, syscall.EPIPE
		}
	}
	return l.b.Write(p)
}

// bodies reads the lines back, as a script would.
func (l *lineBook) bodies(t *testing.T) (bodies []string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[string]int64{}
	for line := range strings.Lines(l.b.String()) {
		var ev struct {
			Conv, Kind, Body string
			Seq              int64
		}
		if !strings.HasSuffix(line, "}\n") { // half of a write
			break
		}
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if n := next[ev.Conv]; n != 0 && n != ev.Seq {
			t.Fatalf("seq %d where %d was next", ev.Seq, n)
		}
		next[ev.Conv] = ev.Seq + 1
		if ev.Kind == "msg" {
			bodies = append(bodies, ev.Body)
		}
	}
	return bodies
}

// tails is one server, one folder, and what is done with them.
type tails struct {
	t     *testing.T
	url   string
	store string
}

func newTails(t *testing.T) *tails {
	n := serve(t, pgtest.URL(t), func(c *serveCmd) { c.Dev = true })
	return &tails{t, n.server.url(), filepath.Join(t.TempDir(), "state")}
}

func (s *tails) cmd(as, device string, edit ...func(*tailCmd)) *tailCmd {
	c := &tailCmd{signInFlags: signInFlags{As: as, Device: device, Server: s.url, Store: s.store}, logFlags: logFlags{LogLevel: "error"}}
	for _, f := range edit {
		f(c)
	}
	return c
}

func (s *tails) send(as, conv, lines string) {
	s.t.Helper()
	var out lineBook
	c := s.cmd(as, "sender", func(c *tailCmd) { c.Send, c.in = conv, strings.NewReader(lines) })
	if err := c.Run(s.t.Context(), &out); err != nil || out.b.Len() > 0 {
		s.t.Fatalf("send: %v, wrote %q", err, out.b.String())
	}
}

// follow runs until what it has written is what is wanted.
func (s *tails) follow(c *tailCmd, want ...string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	out, ended := &lineBook{}, make(chan error, 1)
	go func() { ended <- c.Run(ctx, out) }()
	poll(s.t, fmt.Sprintf("%q to be written", want), func() bool {
		select {
		case err := <-ended:
			s.t.Fatalf("ended: %v", err)
		default:
		}
		return fmt.Sprint(out.bodies(s.t)) == fmt.Sprint(want)
	})
	cancel()
	if err := <-ended; err != nil {
		s.t.Errorf("ended with %v", err)
	}
}

func TestTail(t *testing.T) {
	s := newTails(t)
	s.send("ana", "lobby", "one\n\ntwo\n")
	all := func(c *tailCmd) { c.FromStart = true }
	s.follow(s.cmd("bo", "a", all), "one", "two")
	s.send("ana", "lobby", "three")
	s.follow(s.cmd("bo", "a"), "three")
	s.follow(s.cmd("bo", "a", all), "one", "two", "three")
	s.send("bo", "lobby", "\x7f and \u009b31m and \u202e \"quoted\"\\")
	s.follow(s.cmd("bo", "a", func(c *tailCmd) { c.Conv = []string{"lobby"} }), "\x7f and \u009b31m and \u202e \"quoted\"\\")
}

// A device that is new hears nothing of what was before, and everything of what begins while it listens.
func TestTailBeginsNow(t *testing.T) {
	s := newTails(t)
	s.send("ana", "lobby", "old")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := &lineBook{}, make(chan error, 1)
	c := s.cmd("bo", "new")
	go func() { ended <- c.Run(ctx, out) }()
	// It has heard of the list, hence of the head, when its first conversation arrives here.
	n := 0
	poll(t, "the first new message", func() bool {
		n++
		s.send("ana", "lobby", fmt.Sprint("new ", n))
		return len(out.bodies(t)) > 0
	})
	got := out.bodies(t)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got[0] == "old" || !strings.HasPrefix(got[0], "new ") {
		t.Errorf("wrote %q", got)
	}
	s.follow(s.cmd("bo", "new", func(c *tailCmd) { c.Conv = []string{"nothing of this name"} }))
}

func TestTailEnds(t *testing.T) {
	s := newTails(t)
	s.send("ana", "lobby", strings.Repeat("line\n", 10))
	// The reader of the output is gone: a script's `head` is no error.
	if err := s.cmd("bo", "a", func(c *tailCmd) { c.FromStart = true }).Run(t.Context(), &lineBook{after: 1}); err != nil {
		t.Errorf("closed pipe: %v", err)
	}
	for name, tc := range map[string]struct {
		c    *tailCmd
		want string
	}{
		"bad token":    {s.cmd("", "x", func(c *tailCmd) { c.Token = "nonsense" }), "sign-in was refused"},
		"not a member": {s.cmd("bo", "x", func(c *tailCmd) { c.Send, c.in = "elsewhere", strings.NewReader("a\nb\n") }), "2 lines were not sent"},
		"not UTF-8":    {s.cmd("bo", "x", func(c *tailCmd) { c.Send, c.in = "lobby", strings.NewReader("\xff\nfine\n") }), "1 line was not sent"},
		"too long a line": {s.cmd("bo", "x", func(c *tailCmd) {
			c.Send, c.in = "lobby", strings.NewReader(strings.Repeat("x", 1<<20)+"\nbehind it\n")
		}), "1 line was not sent"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.c.Run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	s.follow(s.cmd("ana", "fresh", func(c *tailCmd) { c.FromStart = true }), append(strings.Fields(strings.Repeat("line ", 10)), "fine", "behind it")...)
}

// What is interrupted before it was answered is kept and goes out with the next start, once.
func TestTailSendKeepsWhatWaits(t *testing.T) {
	s := newTails(t)
	url := s.url
	s.url = "http://127.0.0.1:1" // nobody there
	ctx, cancel := context.WithCancel(t.Context())
	in, typed := io.Pipe()
	c := s.cmd("ana", "sender", func(c *tailCmd) { c.Send, c.in = "lobby", in })
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, io.Discard) }()
	_, _ = io.WriteString(typed, "first\nsecond\n")
	_, _ = io.WriteString(typed, "\n") // taken when the two are on disk
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "2 lines wait in the outbox") {
		t.Fatalf("interrupted: %v", err)
	}
	_ = typed.Close()
	old := filepath.Join(s.store, "127.0.0.1:1", "ana", "sender.db")
	s.url = url
	c = s.cmd("ana", "sender", func(c *tailCmd) { c.Send, c.in = "lobby", strings.NewReader("third\n") })
	cfg, err := c.config(t.Context(), "tail")
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, old, cfg.StorePath) // the same device, whose server has another address now
	if err := c.Run(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	s.follow(s.cmd("bo", "a", func(c *tailCmd) { c.FromStart = true }), "first", "second", "third")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTailLine(t *testing.T) {
	body := "a\u009bb\u202e\u2028\x1b"
	ev := posthorn.Event{Conv: "c", Seq: 1, Kind: posthorn.KindMsg, Body: &body, Data: []byte("{\"n\": 1.50,\n\"s\":\"x\u0085\"}"), At: time.UnixMilli(5)}
	want := `{"conv":"c","seq":1,"kind":"msg","body":"a\u009bb\u202e\u2028\u001b","data":{"n":1.50,"s":"x\u0085"},"at":5}` + "\n"
	if got := string(appendLine(nil, &ev)); got != want {
		t.Errorf("%s", got)
	}
}

func TestTailStoreInUse(t *testing.T) {
	c := &tailCmd{signInFlags: signInFlags{As: "ana", Server: "http://127.0.0.1:1", Store: t.TempDir()}, logFlags: logFlags{LogLevel: "error"}}
	chat := &chatCmd{signInFlags: signInFlags{As: "ana", Server: c.Server, Store: c.Store, Device: "tail"}}
	cl, _, err := chat.open(t.Context(), newChatAcks())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := c.Run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "--device NAME") {
		t.Errorf("%v", err)
	}
}
