package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

func TestSignInStorePath(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	for want, f := range map[string]signInFlags{
		"/state/posthorn/h:1/ana/terminal.db":            {As: "ana", Token: "x"},
		"/state/posthorn/h:1/ana/phone.db":               {As: "ana", Token: "x", Device: "phone"},
		"/elsewhere/h:1/ana/terminal.db":                 {As: "ana", Token: "x", Store: "/elsewhere"},
		"/state/posthorn/h:1/%2E.%2Fx/terminal.db":       {As: "../x", Token: "x"},
		"/state/posthorn/h:1/%2E./terminal.db":           {As: "..", Token: "x"},
		"/state/posthorn/h:1/token-2d711642b726/term.db": {Token: "x", Device: "term"},
	} {
		f.Server = "http://h:1"
		cfg, err := f.config(t.Context(), "terminal")
		if err != nil || cfg.StorePath != want {
			t.Errorf("%+v: %q, %v; want %q", f, cfg.StorePath, err, want)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "/home")
	if root, err := (&signInFlags{}).root(); err != nil || root != "/home/.local/state/posthorn" {
		t.Errorf("without XDG_STATE_HOME: %q, %v", root, err)
	}
}

// A refusal is told before anything is opened; a server that is not there is no reason not to start.
func TestSignInErrors(t *testing.T) {
	status, answer := 0, ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer srv.Close()
	for name, tc := range map[string]struct {
		flags  signInFlags
		status int
		answer string
		want   string // "": starts
	}{
		"nobody":       {flags: signInFlags{Server: srv.URL}, want: "who is it?"},
		"no URL":       {flags: signInFlags{As: "ana", Server: "localhost"}, want: "--server is a URL"},
		"no --dev":     {flags: signInFlags{As: "ana", Server: srv.URL}, status: 404, answer: "{}", want: "runs without --dev"},
		"bad name":     {flags: signInFlags{As: "a\x1b", Server: srv.URL}, status: 400, answer: `{"detail":"bad \u001b user"}`, want: `as "a\x1b": bad ␛ user`},
		"down":         {flags: signInFlags{As: "ana", Server: srv.URL}, status: 503, answer: "<html>"},
		"good":         {flags: signInFlags{As: "ana", Server: srv.URL}, status: 200, answer: `{"token":"t"}`},
		"no server":    {flags: signInFlags{As: "ana", Server: "http://127.0.0.1:1"}},
		"token, alone": {flags: signInFlags{Token: "t", Server: "http://127.0.0.1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer = tc.status, tc.answer
			tc.flags.Store = t.TempDir()
			_, err := tc.flags.config(t.Context(), "terminal")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// The device is part of the sign-in: a token is for one device.
func TestSignInNamesTheDevice(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = r.URL.Path + " " + string(b)
		_, _ = io.WriteString(w, `{"token":"t"}`)
	}))
	defer srv.Close()
	cfg, err := (&signInFlags{As: "ana", Device: "phone", Store: t.TempDir(), Server: "ws" + strings.TrimPrefix(srv.URL, "http") + "/below"}).config(t.Context(), "terminal")
	if err != nil {
		t.Fatal(err)
	}
	if token, err := cfg.Token(t.Context()); token != "t" || err != nil || got != `/below/api/v1/dev/token {"device":"phone","user":"ana"}` {
		t.Errorf("%q, %v; asked %s", token, err, got)
	}
}

func TestWhyOffline(t *testing.T) {
	for want, err := range map[string]error{
		"":                              nil,
		"no server there":               fmt.Errorf("x: %w", &net.OpError{Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}),
		"no answer":                     fmt.Errorf("x: %w", context.DeadlineExceeded),
		"the connection broke":          fmt.Errorf("x: %w", io.EOF),
		"the token is no good":          fmt.Errorf("x: %w", posthorn.Errorf(posthorn.CodeUnauthenticated, "the token is no good")),
		"the innermost ␛":               fmt.Errorf("x: %w", errors.New("the innermost \x1b")),
		"the server runs without --dev": fmt.Errorf("client: token: %w", &refusedSignIn{"the server runs without --dev"}),
		"the token is for another user or device than this store": fmt.Errorf("%w: bo on phone", client.ErrOtherUser),
	} {
		if got := whyOffline(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// One process per device; the message says which flag helps. The store is nobody else's to read.
func TestSignInStoreIsLockedAndPrivate(t *testing.T) {
	c := &chatCmd{signInFlags: signInFlags{As: "ana", Server: "http://127.0.0.1:1", Store: filepath.Join(t.TempDir(), "state")}}
	cl, path, err := c.open(t.Context(), newChatAcks())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, _, err := c.open(t.Context(), newChatAcks()); err == nil || !strings.Contains(err.Error(), "--device") {
		t.Errorf("a second start: %v", err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700, c.Store: 0o700} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	m := loadChatMemory(path + ".seen")
	m.Convs["c"] = remembered{Seen: 7, Peers: []string{"bo"}}
	if err := m.save(); err != nil {
		t.Fatal(err)
	}
	if got := loadChatMemory(path + ".seen").Convs["c"]; got.Seen != 7 || got.Peers[0] != "bo" {
		t.Errorf("remembered %+v", got)
	}
	if err := os.WriteFile(path+".seen", []byte("{"), 0o600); err != nil || len(loadChatMemory(path+".seen").Convs) != 0 {
		t.Error("a damaged file is not put up with")
	}
}

// In a script the chat says what to use instead.
func TestChatNeedsATerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, out := range []io.Writer{io.Discard, null} {
		if err := (&chatCmd{}).Run(t.Context(), out); err == nil || !strings.Contains(err.Error(), "posthorn tail") {
			t.Errorf("%v", err)
		}
	}
}
