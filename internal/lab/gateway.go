package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// gateway is one `posthorn serve` process on the trial's database.
type gateway struct {
	*process
	name string
	url  string
	key  string // admin
}

// setting changes how a gateway is started.
type setting func(*program)

// withFault arms a gateway's fault points, by the variable that the specification names.
func withFault(spec string) setting {
	return func(p *program) { p.env = append(p.env, "IM_FAULT="+spec) }
}

// withSweep sets the interval of the sweep, by the variable that the specification names; 0 is off.
func withSweep(every time.Duration) setting {
	return func(p *program) {
		p.env = append(p.env, "IM_SWEEP_MS="+strconv.FormatInt(every.Milliseconds(), 10))
	}
}

func withFlags(flags ...string) setting {
	return func(p *program) { p.args = append(p.args, flags...) }
}

// gateway starts one and waits until it is ready.
func (t *trial) gateway(name string, settings ...setting) *gateway {
	ready := filepath.Join(t.dir, "ready-"+name)
	prog := program{name: name, path: t.opt.Program, args: []string{"serve", "--listen", "127.0.0.1:0", "--ready-file", ready, "--log-level", "debug"},
		env: []string{"POSTHORN_DATABASE_URL=" + t.db.url, "POSTHORN_ADMIN_KEY=" + t.key, // not on the command line, which others can read
			"POSTHORN_DATA=" + filepath.Join(t.dir, "data-"+name)}}
	for _, set := range settings {
		set(&prog)
	}
	p, err := t.sup.start(prog)
	t.must(err)
	g := &gateway{process: p, name: name, key: t.key}
	ctx, cancel := t.deadline("gateway %s to be ready", name)
	defer cancel()
	t.must(poll(ctx, func() (bool, error) {
		if !p.alive() {
			return true, nil
		}
		b, err := os.ReadFile(ready)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		g.url = strings.TrimSpace(string(b))
		return err == nil, err
	}))
	if g.url == "" {
		t.abort("gateway %s ended with status %d before it was ready: %s", name, p.code, p.tail(10))
	}
	t.must(poll(ctx, func() (bool, error) { return g.ready(ctx) }))
	return g
}

// ready asks /readyz.
func (g *gateway) ready(ctx context.Context) (bool, error) {
	ok, _, err := g.conditions(ctx)
	return ok, err
}

// conditions is what /readyz says.
func (g *gateway) conditions(ctx context.Context) (ok bool, said string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/readyz", nil)
	if err != nil {
		return false, "", err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return false, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	return err == nil && resp.StatusCode == http.StatusOK, string(b), err
}

// httpClient keeps no connection, so that nothing is left to close.
var httpClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask makes an HTTP call with the admin key and reads its answer.
func (g *gateway) ask(ctx context.Context, method, path string, body, answer any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, g.url+"/api/v1"+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+g.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := httpClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: HTTP status %d: %s", method, path, resp.StatusCode, text)
	}
	return json.Unmarshal(text, answer)
}

// group makes users and a group of which the first one is the owner, and gives its id. Its log begins with one event.
func (t *trial) group(g *gateway, users ...string) string {
	ctx, cancel := t.deadline("a group to be opened")
	defer cancel()
	for _, u := range users {
		var made struct{ User string }
		t.must(g.ask(ctx, http.MethodPost, "/users", map[string]string{"user": u}, &made))
	}
	// By the owner's own token, so that there is an owner.
	owner := *g
	owner.key = t.token(g, users[0], "setup")
	var opened struct{ Conv string }
	t.must(owner.ask(ctx, http.MethodPost, "/conversations", map[string]any{"kind": "group", "members": users, "title": "lab"}, &opened))
	return opened.Conv
}

// token makes a token for a device.
func (t *trial) token(g *gateway, user, device string) string {
	ctx, cancel := t.deadline("a token for %s/%s", user, device)
	defer cancel()
	var made struct{ Token string }
	t.must(g.ask(ctx, http.MethodPost, "/tokens", map[string]any{"user": user, "device": device, "ttl_s": 3600}, &made))
	return made.Token
}
