package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

// signInFlags say who talks to which server, and where what they have is kept. chat and tail share them.
type signInFlags struct {
	As     string `help:"Sign in by name, at a server that runs with --dev." placeholder:"NAME"`
	Server string `help:"Base URL of the server." default:"http://127.0.0.1:8080" placeholder:"URL"`
	Token  string `help:"A device's token; better given as POSTHORN_TOKEN." placeholder:"TOKEN"`
	Device string `help:"This device's name among the user's own. With --token the one that the token is for." placeholder:"NAME"`
	Store  string `help:"Folder for the local log and the outbox; by default posthorn in the user's state folder." type:"path" placeholder:"DIR"`
}

// config says how to connect. A server that answers but refuses is told at once; one that is not there is none of its
// business: what is stored can be read, and written to, without it.
func (f *signInFlags) config(ctx context.Context, device string) (client.Config, error) {
	if f.Device == "" {
		f.Device = device
	}
	base, err := url.Parse(f.Server)
	if err != nil || base.Host == "" {
		return client.Config{}, fmt.Errorf("--server is a URL such as http://127.0.0.1:8080, not %q", f.Server)
	}
	cfg := client.Config{URL: f.Server, Device: f.Device}
	cfg.Token = func(context.Context) (string, error) { return f.Token, nil }
	switch {
	case f.Token == "" && f.As == "":
		return cfg, errors.New("who is it? Give --as NAME (the server runs with --dev), or a device's token as POSTHORN_TOKEN")
	case f.Token == "":
		cfg.Token = func(ctx context.Context) (string, error) { return devToken(ctx, base, f.As, f.Device) }
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		var refused *refusedSignIn
		if _, err := cfg.Token(ctx); errors.As(err, &refused) {
			return cfg, refused
		}
	}
	root, err := f.root()
	cfg.StorePath = filepath.Join(root, fileName(base.Host), fileName(f.who()), fileName(f.Device)+".db")
	return cfg, err
}

// who names the store of a token whose user is not known yet.
func (f *signInFlags) who() string {
	if f.As != "" {
		return f.As
	}
	sum := sha256.Sum256([]byte(f.Token))
	return "token-" + hex.EncodeToString(sum[:6])
}

func (f *signInFlags) root() (string, error) {
	if f.Store != "" {
		return f.Store, nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "posthorn"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%w; --store DIR says where to keep messages", err)
	}
	return filepath.Join(home, ".local", "state", "posthorn"), nil
}

// fileName makes a name of a user, device or host safe as one part of a path.
func fileName(s string) string {
	s = url.PathEscape(s)
	if strings.HasPrefix(s, ".") {
		return "%2E" + s[1:]
	}
	return s
}

// refusedSignIn is a server's answer that trying again does not change.
type refusedSignIn struct{ msg string }

func (e *refusedSignIn) Error() string { return e.msg }

// devToken signs a user in by name. The device is named, since a hello must come from the device that its token is for.
func devToken(ctx context.Context, base *url.URL, user, device string) (string, error) {
	u := *base
	u.Scheme = strings.Replace(u.Scheme, "ws", "http", 1)
	body, err := json.Marshal(map[string]string{"user": user, "device": device})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.JoinPath("/api/v1/dev/token").String(), bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // asked once for each connection
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct{ Token, Detail string }
	bad := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&answer)
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return "", &refusedSignIn{"the server does not sign in by name, it runs without --dev; give a device's token as POSTHORN_TOKEN"}
	case resp.StatusCode/100 == 4:
		return "", &refusedSignIn{fmt.Sprintf("the server refuses the sign-in as %q: %s", user, cleanLine(answer.Detail))}
	case resp.StatusCode/100 != 2, bad != nil, answer.Token == "":
		return "", fmt.Errorf("the sign-in was answered with status %d", resp.StatusCode)
	}
	return answer.Token, nil
}

// openError adds what to do.
func (f *signInFlags) openError(err error) error {
	if errors.Is(err, client.ErrStoreLocked) {
		return fmt.Errorf("device %q of %s is open in another posthorn; give this one a name of its own with --device NAME", f.Device, f.who())
	}
	return err
}

// whyOffline says in a few words why there is no connection.
func whyOffline(err error) string {
	var e *posthorn.Error
	var timeout net.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, client.ErrOtherUser):
		return "the token is for another user or device than this store"
	case errors.As(err, &e):
		return cleanLine(e.Msg)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "no server there"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection broke"
	}
	for next := err; next != nil; next = errors.Unwrap(next) { // the innermost says it shortest
		err = next
	}
	return cleanLine(err.Error())
}
