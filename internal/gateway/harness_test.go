package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/posthorn/posthorn"
)

const patience = 10 * time.Second

// house is a gateway on a loopback listener with fakes behind it.
type house struct {
	t   *testing.T
	g   *Gateway
	log *fakeLog
	hub *fakeHub
	ts  *httptest.Server
	out *lines
}

func limits(change ...func(*posthorn.Limits)) posthorn.Limits {
	l := posthorn.DefaultLimits()
	l.AckedDelay = 20 * time.Millisecond
	for _, c := range change {
		c(&l)
	}
	return l
}

// build starts a house; it is drained and closed at the end of the test.
func build(t *testing.T, l posthorn.Limits, change ...func(*Config)) *house {
	t.Helper()
	log, hub := newFakes()
	h := &house{t: t, log: log, hub: hub, out: &lines{}}
	cfg := Config{
		Log: log, Hub: hub, Auth: fakeAuth{}, Limits: l, GatewayID: "g1", AllowedOrigins: []string{"https://chat.example.com"},
		Logger: slog.New(slog.NewTextHandler(h.out, nil)),
	}
	for _, c := range change {
		c(&cfg)
	}
	h.g = New(cfg)
	h.g.Start()
	h.ts = httptest.NewServer(h.g)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.g.Stop(ctx); err != nil {
			t.Errorf("Stop: %v", err)
		}
		h.ts.Close()
		hub.mu.Lock()
		defer hub.mu.Unlock()
		if len(hub.live) != 0 || hub.orphans != 0 {
			t.Errorf("the hub still knows %d sockets, and %d came after they had gone", len(hub.live), hub.orphans)
		}
		if n := h.g.n.sockets.Load(); n != 0 {
			t.Errorf("%d sockets left", n)
		}
	})
	return h
}

// lines is a log that may be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// frame is what tests look at in a server frame.
type frame struct {
	T         string `json:"t"`
	RID       string `json:"rid"`
	Conv      string `json:"conv"`
	Code      posthorn.Code
	Msg       string
	Seq       int64
	Head      int64
	Delivered int64
	Dup       bool
	Why       string
	Retry     int64 `json:"retry_ms"`
	Reconnect int64 `json:"reconnect_ms"`
	MaxFrame  int64 `json:"max_frame"`
	Heartbeat int64 `json:"heartbeat_ms"`
	Ev        struct {
		Conv string
		Seq  int64
	}
	raw string
}

func parse(t testing.TB, b []byte) frame {
	t.Helper()
	var f frame
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatalf("not a frame: %q: %v", b, err)
	}
	f.raw = string(b)
	return f
}

// client is a well-behaved peer.
type client struct {
	t   testing.TB
	ws  *websocket.Conn
	tcp *net.TCPConn
}

// connect upgrades; deflate offers compression, small makes the receive window small.
func (h *house) connect(deflate, small bool) *client {
	h.t.Helper()
	c, err := h.dial(deflate, small)
	if err != nil {
		h.t.Fatalf("dial: %v", err)
	}
	h.t.Cleanup(func() { _ = c.ws.CloseNow() })
	return c
}

func (h *house) dial(deflate, small bool) (*client, error) {
	c := &client{t: h.t}
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			c.tcp = nc.(*net.TCPConn)
			if small {
				_ = c.tcp.SetReadBuffer(128 << 10) // smaller than a loopback segment it would stall the line
			}
		}
		return nc, err
	}}
	opts := &websocket.DialOptions{Subprotocols: []string{subprotocol}, HTTPClient: &http.Client{Transport: tr}}
	if deflate {
		opts.CompressionMode = websocket.CompressionNoContextTakeover
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, strings.Replace(h.ts.URL, "http", "ws", 1)+"/api/v1/ws", opts)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(4 << 20)
	c.ws = ws
	return c, nil
}

// tryEnter is enter where the gateway may be going.
func (h *house) tryEnter(token string) (*client, error) {
	c, err := h.dial(false, false)
	if err != nil {
		return nil, err
	}
	_, device, _ := strings.Cut(token, "/")
	_ = c.write(fmt.Sprintf(`{"t":"hello","rid":"h","token":%q,"device":%q}`, token, device))
	if f, err := c.read(); err != nil || f.T != "welcome" {
		_ = c.ws.CloseNow()
		return nil, fmt.Errorf("%s %v", f.raw, err)
	}
	return c, nil
}

// enter connects and logs in; the token is "user/device".
func (h *house) enter(token string) *client {
	h.t.Helper()
	c := h.connect(false, false)
	c.login(token)
	return c
}

func (c *client) login(token string) frame {
	c.t.Helper()
	_, device, _ := strings.Cut(token, "/")
	c.say(`{"t":"hello","rid":"h","token":%q,"device":%q}`, token, device)
	return c.want("welcome")
}

// subscribe begins the pushes.
func (c *client) subscribe() {
	c.t.Helper()
	c.say(`{"t":"sub","rid":"sub"}`)
	c.want("subbed")
}

func (c *client) say(format string, args ...any) {
	c.t.Helper()
	if err := c.write(fmt.Sprintf(format, args...)); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

func (c *client) write(s string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.ws.Write(ctx, websocket.MessageText, []byte(s))
}

func (c *client) read() (frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, b, err := c.ws.Read(ctx)
	if err != nil {
		return frame{}, err
	}
	return parse(c.t, b), nil
}

// want reads the next frame, which must be of type t.
func (c *client) want(t string) frame {
	c.t.Helper()
	f, err := c.read()
	if err != nil {
		c.t.Fatalf("waiting for %s: %v", t, err)
	}
	if f.T != t {
		c.t.Fatalf("got %s, want %s", f.raw, t)
	}
	return f
}

// wantError reads an error with this code for this rid.
func (c *client) wantError(code posthorn.Code, rid string) frame {
	c.t.Helper()
	f := c.want("error")
	if f.Code != code || f.RID != rid {
		c.t.Fatalf("got %s, want %s for rid %q", f.raw, code, rid)
	}
	return f
}

// wantClose reads until the connection ends, which must be with this status.
func (c *client) wantClose(status websocket.StatusCode) {
	c.t.Helper()
	for {
		if _, err := c.read(); err != nil {
			if got := websocket.CloseStatus(err); got != status {
				c.t.Fatalf("closed with %v (%v), want %v", got, err, status)
			}
			return
		}
	}
}

// up proves that the socket still works.
func (c *client) up(rid string) {
	c.t.Helper()
	c.say(`{"t":"ping","rid":%q}`, rid)
	if f := c.want("pong"); f.RID != rid {
		c.t.Fatalf("got %s, want pong %s", f.raw, rid)
	}
}

// eventually polls until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for !ok() {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("timed out: %s", what)
		}
	}
}

// socket gives a user's socket, for a look inside.
func (h *house) socket(user string) (found *socket) {
	h.t.Helper()
	eventually(h.t, "a socket of "+user, func() bool { // it is registered after its welcome
		h.hub.mu.Lock()
		defer h.hub.mu.Unlock()
		for s := range h.hub.live {
			if s.Viewer().User == user {
				found = s.(*socket)
			}
		}
		return found != nil
	})
	return found
}

func websocketStatus(n int) websocket.StatusCode { return websocket.StatusCode(n) }
