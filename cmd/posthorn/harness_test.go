package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/api"
	"github.com/posthorn/posthorn/internal/identity"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store/directory"
	"github.com/posthorn/posthorn/wire"
)

func TestMain(m *testing.M) {
	if os.Getenv(doomedEnv) != "" {
		doomed()
		return
	}
	pgtest.Main(m, func() {
		if path, err := binary(); built.Load() && err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	})
}

const patience = 30 * time.Second // a deadline against hanging, never a measure

// logBook keeps what a server logged.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// node is a whole server of this process on a test's database.
type node struct {
	*server
	url  string // of the database
	logs *logBook
}

// serve starts a server with the flags' defaults, changed by edit.
func serve(t *testing.T, url string, edit ...func(*serveCmd)) *node {
	t.Helper()
	c := &serveCmd{Listen: "127.0.0.1:0", Doorbell: "notify", Channel: "im_events", Sweep: 5 * time.Second, TailPollMax: time.Second, Lease: 15 * time.Second, AdminKey: strings.Repeat("k", 40)}
	c.DatabaseURL, c.Schema = url, "posthorn"
	for _, f := range edit {
		f(c)
	}
	book := &logBook{}
	s, err := startServer(t.Context(), c, slog.New(slog.NewTextHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(10 * time.Second); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the server's log:\n%s", book)
		}
	})
	return &node{server: s, url: url, logs: book}
}

func (n *node) directory() *directory.Directory {
	return directory.New(n.store.Pool(), n.store.Statement)
}

// token makes the user where new, and a token for one of their devices.
func (n *node) token(t *testing.T, user, device string) string {
	t.Helper()
	if _, err := (users{n.directory()}).PutUser(t.Context(), api.User{User: user}); err != nil {
		t.Fatal(err)
	}
	tok, err := identity.NewIssuer(tokenStore{n.directory()}, nil).IssueToken(t.Context(), identity.TokenRequest{User: user, Device: device})
	if err != nil {
		t.Fatal(err)
	}
	return tok.Token
}

// peer speaks the protocol by hand.
type peer struct {
	*client.Conn
	t       *testing.T
	welcome *wire.Welcome
}

// connect logs a device in; each time it is a new install unless edit says otherwise.
func (n *node) connect(t *testing.T, user, device string, edit ...func(*wire.Hello)) *peer {
	t.Helper()
	return n.enter(t, n.token(t, user, device), device, edit...)
}

// enter logs in with a token.
func (n *node) enter(t *testing.T, token, device string, edit ...func(*wire.Hello)) *peer {
	t.Helper()
	p := n.dial(t, nil)
	h := &wire.Hello{Token: token, Device: device}
	for _, f := range edit {
		f(h)
	}
	p.welcome = ask[*wire.Welcome](p, h)
	return p
}

func (n *node) dial(t *testing.T, opts *client.DialOptions) *peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := client.Dial(ctx, n.server.url(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &peer{Conn: c, t: t}
}

// ask calls and wants this reply.
func ask[F wire.Frame](p *peer, f wire.Frame) F {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	r, err := p.Call(ctx, f)
	if err != nil {
		p.t.Fatalf("%s: %v", f.Type(), err)
	}
	got, ok := r.(F)
	if !ok {
		p.t.Fatalf("%s was answered with %T", f.Type(), r)
	}
	return got
}

// refused calls and wants this error code.
func (p *peer) refused(f wire.Frame, want posthorn.Code) *posthorn.Error {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	r, err := p.Call(ctx, f)
	var e *posthorn.Error
	if !errors.As(err, &e) || e.Code != want {
		p.t.Fatalf("%s: want %s, got %v %v", f.Type(), want, r, err)
	}
	return e
}

// frame waits for the next frame of this type that fits; others are passed over.
func frame[F wire.Frame](p *peer, fits func(F) bool) F {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case in, ok := <-p.Frames():
			if !ok {
				p.t.Fatalf("the connection ended: %v", p.Err())
			}
			if f, ok := in.Frame.(F); ok && (fits == nil || fits(f)) {
				return f
			}
		case <-deadline:
			var none F
			p.t.Fatalf("no %T came", none)
		}
	}
}

// raw writes bytes and waits for the frame that answers them.
func (p *peer) raw(text string) wire.Frame {
	p.t.Helper()
	if err := p.WriteRaw([]byte(text)); err != nil {
		p.t.Fatal(err)
	}
	return frame[wire.Frame](p, nil)
}

func (p *peer) send(conv, cmid, body string) *wire.Sent {
	p.t.Helper()
	return ask[*wire.Sent](p, &wire.Send{Conv: conv, Cmid: cmid, Body: &body})
}

// group opens a group with other members.
func (p *peer) group(cmid string, members ...string) string {
	p.t.Helper()
	return ask[*wire.Opened](p, &wire.Open{Cmid: cmid, Kind: posthorn.Group, Members: members}).Conv
}

// pair serves with ana and bo in one group.
func pair(t *testing.T, edit ...func(*serveCmd)) (n *node, ana, bo *peer, conv string) {
	t.Helper()
	n = serve(t, pgtest.URL(t), edit...)
	ana, bo = n.connect(t, "ana", "phone"), n.connect(t, "bo", "phone")
	return n, ana, bo, ana.group("open", "bo")
}
