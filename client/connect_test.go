package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// Goal: each way in which a server says goodbye is followed by what it asks for.
func TestByes(t *testing.T) {
	for _, c := range []struct {
		code  posthorn.Code
		ms    int64
		phase Phase
		after time.Duration // no hello before
		by    time.Duration // a hello by then, where the client comes back by itself
	}{
		{posthorn.CodeReplaced, 0, Replaced, time.Hour, 0},
		{posthorn.CodeSlowConsumer, 0, Online, 100 * time.Millisecond, time.Second},
		{posthorn.CodeShuttingDown, 8000, Online, 0, 9 * time.Second},
		{posthorn.CodeNewEpoch, 0, Online, 100 * time.Millisecond, time.Second},
		{posthorn.CodeUnauthenticated, 0, Online, 100 * time.Millisecond, time.Second},
		{posthorn.CodeStaleInstall, 0, Online, 100 * time.Millisecond, time.Second},
	} {
		for _, framed := range []bool{true, false} {
			name := string(c.code)
			if !framed {
				name += " by close status alone"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake()
					cfg := serveFake(t, f)
					f.post("room", 2)
					cl := open(t, cfg)
					waitCursor(t, cl, "room", 2)
					f.locked(func() { f.seen = nil })
					if framed {
						f.each(&wire.Bye{Code: c.code, ReconnectMS: c.ms})
					} else {
						f.locked(func() {
							_ = f.conns[0].ws.Close(websocket.StatusCode(c.code.ByeStatus()), "")
						})
					}
					pass(c.after)
					if n := len(sentFrames[*wire.Hello](f)); n != 0 && c.after > 0 {
						t.Errorf("%d hellos after %v", n, c.after)
					}
					pass(c.by)
					if got := cl.State(); got.Phase != c.phase || (got.Phase != Online) == (got.Err == nil) {
						t.Errorf("state %+v, want %v", got, c.phase)
					}
					want := 1
					if c.phase == Replaced {
						want = 0
					}
					if n := len(sentFrames[*wire.Hello](f)); n != want {
						t.Errorf("%d hellos, want %d", n, want)
					}
					cl.Reconnect()
					pass(time.Minute)
					if cl.State().Phase != Online {
						t.Errorf("state after Reconnect: %+v", cl.State())
					}
					sameLog(t, cl, f, "room")
				})
			})
		}
	}
}

// Goal: a goodbye is heeded even where a write on the closed connection failed before the session came to look at it.
// Method: the server says bye and closes while the client stores a burst, so that its ack is what fails.
func TestByeBehindAFailedWrite(t *testing.T) {
	for _, framed := range []bool{true, false} {
		t.Run(fmt.Sprintf("framed %v", framed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				cfg := serveFake(t, f)
				f.post("room", 1)
				cfg.AckEvery = 1
				said := false
				cfg.Hooks.Applied = func([]posthorn.Event) {
					if said {
						return
					}
					said = true
					if framed {
						f.each(&wire.Bye{Code: posthorn.CodeReplaced})
					} else {
						f.mu.Lock()
						ws := f.conns[0].ws
						f.mu.Unlock()
						_ = ws.Close(websocket.StatusCode(posthorn.CodeReplaced.ByeStatus()), "")
					}
					synctest.Wait() // the connection has ended
				}
				c := open(t, cfg)
				pass(time.Minute)
				if s := c.State(); s.Phase != Replaced || posthorn.AsError(s.Err).Code != posthorn.CodeReplaced {
					t.Errorf("state %+v, want replaced", s)
				}
				if n := len(sentFrames[*wire.Hello](f)); n != 1 {
					t.Errorf("%d hellos, want 1", n)
				}
				c.Reconnect()
				pass(time.Minute)
				sameLog(t, c, f, "room")
			})
		})
	}
}

// Goal: a token that is refused is renewed once; after that the client waits to be told.
func TestTokenIsRenewedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		asked, token := 0, "expired"
		cfg.Token = func(context.Context) (string, error) {
			if asked++; asked == 3 {
				return "", errors.New("the token service is away") // no refusal, tried again
			}
			return token, nil
		}
		c := open(t, cfg)
		pass(time.Hour)
		if c.State().Phase != Unauthorized || asked != 2 {
			t.Fatalf("state %+v after %d tokens, want unauthorized after 2", c.State(), asked)
		}
		token = "good"
		c.Reconnect()
		pass(time.Minute)
		if c.State().Phase != Online || asked != 4 {
			t.Fatalf("state %+v after %d tokens, want online after 4", c.State(), asked)
		}
		f.locked(func() { f.user = "eve" })
		f.cut()
		pass(time.Minute)
		if s := c.State(); s.Phase != Unauthorized || !errors.Is(s.Err, ErrOtherUser) {
			t.Errorf("state with another user's token: %+v", s)
		}
	})
}

// Goal: what the client waits between attempts grows, is jittered, and is bounded; a server that is away is not stormed.
func TestReconnectBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		var at []time.Time
		cfg.Token = func(context.Context) (string, error) {
			at = append(at, time.Now())
			return "", errors.New("away")
		}
		open(t, cfg)
		pass(10 * time.Minute)
		var waits []time.Duration
		for i := range at[1:] {
			waits = append(waits, at[i+1].Sub(at[i]))
		}
		if waits[0] > 400*time.Millisecond || len(waits) < 40 || len(waits) > 120 {
			t.Errorf("%d waits, the first %v", len(waits), waits[0])
		}
		late := waits[8:]
		if slices.Max(late) > 15*time.Second || slices.Min(late) < 5*time.Second || slices.Max(late) == slices.Min(late) {
			t.Errorf("later waits from %v to %v, want 5–15 s with jitter", slices.Min(late), slices.Max(late))
		}
	})
}

// Goal: those whom a server sends away together come back spread over the time that it names; those whom it refuses do
// not come back before the time that it names.
func TestPause(t *testing.T) {
	e := &posthorn.Error{Retry: 8 * time.Second}
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := pause(250*time.Millisecond, e, true)
		low, high = min(low, d), max(high, d)
	}
	if low < 0 || low > time.Second || high > 8*time.Second || high < 7*time.Second {
		t.Errorf("spread from %v to %v, want over 8 s", low, high)
	}
	if d := pause(time.Second, e, false); d < 8*time.Second || d > 9*time.Second {
		t.Errorf("after a refusal %v, want 8 s and a little", d)
	}
	if d := pause(time.Second, &posthorn.Error{}, true); d != time.Second {
		t.Errorf("without a word %v, want the back-off", d)
	}
}

// Goal: a connection that died without a word is noticed by what does not come back, and a quiet one is kept.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.hbMS = 10_000
		cfg := serveFake(t, f)
		c := open(t, cfg)
		pass(10 * time.Minute)
		if n := len(sentFrames[*wire.Hello](f)); n != 1 {
			t.Fatalf("%d hellos on a quiet connection, want 1", n)
		}
		pings := len(sentFrames[*wire.Ping](f))
		if pings < 50 || pings > 130 {
			t.Errorf("%d pings in ten minutes", pings)
		}
		f.locked(func() { f.mute = func(wire.Frame) bool { return true } })
		pass(21 * time.Second)
		if s := c.State(); s.Phase == Online {
			t.Errorf("still online 21 s after the last frame, with a heartbeat of 10 s")
		}
		f.locked(func() { f.mute = nil })
		pass(time.Minute)
		if s := c.State(); s.Phase != Online {
			t.Errorf("state %+v", s)
		}
	})
}

// Goal: nothing is sent on a connection before its nonce is on disk, and an honest restart is no clone (I1).
func TestI1_NonceBeforeTheFirstFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 3)
		var c *Client
		early := 0
		f.locked(func() {
			f.on = func(s *fakeSocket, fr wire.Frame) bool {
				if fr.Type() == "sub" {
					var id identity
					_ = c.store.view(func(tx storeTx) (err error) { id, err = tx.identity(); return err })
					if id.Resume != f.resumes[len(f.resumes)-1] {
						early++
					}
				}
				return false
			}
		})
		cl, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		c = cl
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		image, err := os.ReadFile(cfg.StorePath)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			f.cut()
			pass(time.Minute)
		}
		if early > 0 || c.State().Install != 1 {
			t.Errorf("%d frames before the nonce was on disk; install %d, want 1", early, c.State().Install)
		}
		p := send(t, c, "room", "mine")
		if _, err := result(t, p); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()

		// A copy of the store from before: a clone. It gets an install of its own and begins anew.
		f.locked(func() { f.seen, f.on = nil, nil })
		clone := cfg
		clone.StorePath += "-clone"
		if err := os.WriteFile(clone.StorePath, image, 0o600); err != nil {
			t.Fatal(err)
		}
		c = open(t, clone)
		pass(time.Second)
		cur, _, _ := c.Cursor("room")
		if c.State().Install != 2 || cur.Install != 2 || cur.Seq != 4 {
			t.Errorf("the clone: state %+v, cursor %+v", c.State(), cur)
		}
		if syncs := sentFrames[*wire.Sync](f); len(syncs) != 1 || syncs[0].After != 0 {
			t.Errorf("the clone synced %+v, want anew", syncs)
		}
		sameLog(t, c, f, "room")

		// The first one comes back: its install is stale, so it too starts anew, and the other one steps back.
		c1 := open(t, cfg)
		pass(time.Minute)
		if c1.State().Install != 3 || c1.State().Phase != Online || c.State().Phase != Replaced {
			t.Errorf("the first: %+v; the clone: %+v", c1.State(), c.State())
		}
		sameLog(t, c1, f, "room")
	})
}

// Goal: Start and Close are legal at any time, any number of times, from anywhere, and leave nothing behind.
func TestStartAndCloseAnyhow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.post("room", 3)
		cfg := serveFake(t, f)
		for i := range 20 {
			c, err := Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			feed := c.Subscribe(1)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for j := range 6 {
				all.Go(func() {
					switch (i + j) % 3 {
					case 0:
						if err := c.Start(ctx); err != nil && !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
					case 1:
						if err := c.Close(); err != nil {
							t.Error(err)
						}
					default:
						if _, err := c.Send(ctx, "room", Message{Body: "x"}); err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
					}
				})
			}
			if i%2 == 0 {
				cancel()
			}
			all.Wait()
			cancel()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			for range feed.C() {
			}
			feed.Close()
			if _, err := c.Send(t.Context(), "room", Message{Body: "x"}); !errors.Is(err, ErrClosed) {
				t.Errorf("Send after Close: %v", err)
			}
			if _, _, err := c.Cursor("room"); !errors.Is(err, ErrClosed) {
				t.Errorf("Cursor after Close: %v", err)
			}
			if _, err := c.History(t.Context(), "room", 1, 1); !errors.Is(err, ErrClosed) {
				t.Errorf("History after Close: %v", err)
			}
			if c.State().Phase != Closed {
				t.Errorf("state %+v", c.State())
			}
		}
		c := open(t, cfg)
		pass(time.Minute)
		if n := len(c.Outbox()); n != 0 {
			t.Errorf("%d items were left behind", n)
		}
		sameLog(t, c, f, "room")
	})
}

// Goal: when Start's context ends the connection ends, and what is on disk can still be read and added to.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 3)
		c, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		waitCursor(t, c, "room", 3)
		cancel()
		pass(time.Second)
		if s := c.State(); s.Phase != Offline || !errors.Is(s.Err, context.Canceled) {
			t.Errorf("state %+v", s)
		}
		if got := f.acks("room"); !slices.Equal(got, []int64{3}) {
			t.Errorf("acks %v, want what was waiting to be said", got)
		}
		send(t, c, "room", "later")
		if len(held(t, c, "room")) != 3 || len(c.Outbox()) != 1 {
			t.Error("the store is not usable without a connection")
		}
	})
}

// Goal: the plain connection says what it is told, gives replies to their callers and the rest to Frames.
func TestConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 2)
		conn, err := Dial(t.Context(), "ws://fake/", &DialOptions{HTTPClient: cfg.HTTPClient})
		if err != nil {
			t.Fatal(err)
		}
		var e *posthorn.Error
		if _, err := conn.Hello(t.Context(), &wire.Hello{Token: "bad", Device: "d"}); !errors.As(err, &e) || e.Code != posthorn.CodeUnauthenticated {
			t.Errorf("hello with a bad token: %v", err)
		}
		w, err := conn.Hello(t.Context(), &wire.Hello{RID: "mine", Token: "good", Device: "d"})
		if err != nil || w.User != "ann" || w.RID != "mine" {
			t.Fatal(w, err)
		}
		r, err := conn.Call(t.Context(), &wire.Sync{Conv: "room", After: 1, Limit: 10})
		if err != nil || len(r.(*wire.Page).Page.Events) != 1 {
			t.Error(r, err)
		}
		if _, err := conn.Call(t.Context(), &wire.Sync{Conv: "room", After: 9, Limit: 10}); !errors.As(err, &e) || e.Code != posthorn.CodeCursorAhead {
			t.Error(err)
		}
		for _, raw := range []string{`{"t":"ack","conv":"room","seq":-1,"rid":"r"}`, `no json`, `{"t":"ping","rid":"a\u0000b"}`} {
			if err := conn.WriteRaw([]byte(raw)); err != nil {
				t.Fatal(err)
			}
			in := <-conn.Frames()
			if x, ok := in.Frame.(*wire.Error); !ok || x.Code != posthorn.CodeBadFrame || !strings.Contains(string(in.Raw), "BAD_FRAME") {
				t.Errorf("%s: answered by %s", raw, in.Raw)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.locked(func() { f.mute = func(wire.Frame) bool { return true } })
		if _, err := conn.Call(ctx, &wire.Ping{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		f.locked(func() { f.mute = nil })
		if conn.Err() != nil {
			t.Error(conn.Err())
		}
		f.locked(func() { f.conns[0].say(&wire.Bye{Code: posthorn.CodeShuttingDown, ReconnectMS: 70}) })
		for range conn.Frames() {
		}
		if err := conn.Err(); !errors.As(err, &e) || e.Code != posthorn.CodeShuttingDown || e.Retry != 70*time.Millisecond {
			t.Errorf("after a bye: %v", err)
		}
		if _, err := conn.Call(t.Context(), &wire.Ping{}); err == nil {
			t.Error("a call on a dead connection")
		}
		_ = conn.Close()
		_ = conn.Close()
	})
}

func TestDialRefuses(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/odd"+socketPath) {
			ws, err := websocket.Accept(w, r, nil)
			if err == nil {
				_ = ws.CloseNow()
			}
			return
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer plain.Close()
	for base, want := range map[string]string{
		plain.URL: "418", plain.URL + "/odd": subprotocol, "ftp://x": "ftp", "http://": "host", "://": "URL", "": "ws",
	} {
		c, err := Dial(t.Context(), base, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want something about %q", base, err, want)
		}
		if err == nil {
			_ = c.Close()
		}
	}
	for base, want := range map[string]string{
		"http://h:1": "http://h:1/api/v1/ws", "wss://h/sub/": "https://h/sub/api/v1/ws", "ws://h/api/v1/ws": "http://h/api/v1/ws",
	} {
		if got, err := endpoint(base); got != want || err != nil {
			t.Errorf("endpoint(%q) = %q %v, want %q", base, got, err, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestDevToken(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/dev/token" || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		body := make([]byte, 100)
		n, _ := r.Body.Read(body)
		switch string(body[:n]) {
		case `{"user":"ann"}`:
			_, _ = w.Write([]byte(`{"token":"t","user":"ann","device":"d"}`))
		case `{"user":""}`:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"title":"bad","detail":"user must not be empty","code":"BAD_FRAME"}`))
		default:
			_, _ = w.Write([]byte(`{}`))
		}
	}))
	defer srv.Close()
	d, err := DevToken(t.Context(), strings.Replace(srv.URL, "http", "ws", 1), "ann")
	if err != nil || d != (Dev{"t", "ann", "d"}) {
		t.Error(d, err)
	}
	var e *posthorn.Error
	if _, err := DevToken(t.Context(), srv.URL, ""); !errors.As(err, &e) || e.Code != posthorn.CodeBadFrame {
		t.Error(err)
	}
	if _, err := DevToken(t.Context(), srv.URL+"/elsewhere", "ann"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
	if _, err := DevToken(t.Context(), srv.URL, "x"); err == nil {
		t.Error("an answer without a token was taken")
	}
}
