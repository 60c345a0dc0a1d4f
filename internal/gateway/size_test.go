package gateway

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

// allocated runs f and gives the bytes that the process allocated meanwhile: an upper bound of what the gateway held.
func allocated(f func()) uint64 {
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	f()
	runtime.ReadMemStats(&b)
	return b.TotalAlloc - a.TotalAlloc
}

// TestB76_SmallFrameThatBecomesHuge: the bound of a frame holds for the reassembled, inflated message, before login.
func TestB76_SmallFrameThatBecomesHuge(t *testing.T) {
	h := build(t, limits(), func(c *Config) { c.Compression = true })

	t.Run("64 MB of zeros as the first frame", func(t *testing.T) {
		var z bytes.Buffer
		w, _ := flate.NewWriter(&z, flate.BestCompression)
		_, _ = io.CopyN(w, zeros{}, 1<<20)
		_ = w.Flush()                      // ends on a byte: the megabyte can be repeated
		all := bytes.Repeat(z.Bytes(), 64) // 64 KB
		bomb := rawFrame(fin|rsv1|text, bytes.TrimSuffix(all, []byte{0, 0, 0xff, 0xff}))
		p := h.raw()
		if res := p.upgrade("Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover"); !strings.Contains(res.Header.Get("Sec-WebSocket-Extensions"), "client_no_context_takeover; server_no_context_takeover") {
			t.Fatalf("extensions %q", res.Header.Get("Sec-WebSocket-Extensions"))
		}
		if n := allocated(func() {
			if err := p.write(bomb); err != nil {
				t.Fatal(err)
			}
			p.wantStatus(1009)
		}); n > 4<<20 {
			t.Errorf("%d bytes allocated", n)
		}
	})
	t.Run("100,000 fragments of 1 KB without FIN", func(t *testing.T) {
		p := h.raw()
		p.upgrade()
		fragment := rawFrame(0, make([]byte, 1024))
		sent := 0
		if n := allocated(func() {
			_ = p.write(rawFrame(text, make([]byte, 1024)))
			for ; sent < 100_000 && p.write(fragment) == nil; sent++ {
			}
		}); n > 4<<20 {
			t.Errorf("%d bytes allocated", n)
		}
		if sent == 100_000 {
			t.Error("all fragments were taken")
		}
	})
	t.Run("fragments to just beyond the bound", func(t *testing.T) {
		p := h.raw()
		p.upgrade()
		b := rawFrame(text, make([]byte, 1024))
		for range 256 {
			b = append(b, rawFrame(0, make([]byte, 1024))...)
		}
		_ = p.write(b)
		p.wantStatus(1009)
	})
	t.Run("frame at the bound and beyond", func(t *testing.T) {
		c := h.enter("ada/size")
		c.t = t
		pad := func(n int) string {
			s := `{"t":"ping","rid":"p","x":""}`
			return strings.Replace(s, `"x":""`, `"x":"`+strings.Repeat("y", n-len(s))+`"`, 1)
		}
		c.say("%s", pad(256<<10))
		c.want("pong")
		_ = c.write(pad(256<<10 + 1))
		c.wantClose(1009)
	})
	t.Run("inflated to the bound and beyond", func(t *testing.T) {
		c := h.connect(true, false)
		c.t = t
		c.login("ada/deflate")
		c.say("%s", `{"t":"ping","rid":"p","x":"`+strings.Repeat("y", 255<<10)+`"}`)
		c.want("pong")
		_ = c.write(`{"t":"ping","rid":"p","x":"` + strings.Repeat("y", 257<<10) + `"}`)
		c.wantClose(1009)
	})
	t.Run("body limit in bytes", func(t *testing.T) {
		c := h.enter("ada/body")
		c.t = t
		for i, x := range []struct {
			body string
			ok   bool
		}{
			{strings.Repeat("a", 64<<10), true},
			{strings.Repeat("a", 64<<10+1), false},
			{strings.Repeat("😀", 16<<10), true},
			{strings.Repeat("😀", 16<<10) + "a", false},
			{strings.Repeat("\n", 64<<10), true}, // twice as long in JSON
		} {
			b, _ := json.Marshal(x.body)
			c.say(`{"t":"send","rid":"%d","conv":"c","cmid":"m%d","body":%s}`, i, i, b)
			if x.ok {
				c.want("sent")
			} else {
				c.wantError("TOO_LARGE", fmt.Sprint(i))
			}
		}
		c.up("still")
	})
}

// TestB76_HalfOpen: a thousand handshakes that never end, and sockets that never log in, cost their own connections for
// a while, and others nothing.
func TestB76_HalfOpen(t *testing.T) {
	h := build(t, limits(func(l *posthorn.Limits) { l.LoginDeadline = 500 * time.Millisecond }))
	h.ts.Close()
	h.ts = httptest.NewUnstartedServer(h.g)
	h.ts.Config.ReadHeaderTimeout = 500 * time.Millisecond // as cmd sets it
	h.ts.Start()
	before := runtime.NumGoroutine()
	var half []net.Conn
	for range 1000 {
		c, err := net.Dial("tcp", strings.TrimPrefix(h.ts.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET /api/v1/ws HTTP/1.1\r\nUpgrade: websocket\r\nHost: x\r\n")
		half = append(half, c)
	}
	var silent []*rawPeer
	for range 100 {
		p := h.raw()
		p.upgrade()
		silent = append(silent, p)
	}
	c := h.enter("ada/d")
	c.say(`{"t":"send","rid":"1","conv":"c","cmid":"m","body":"x"}`)
	c.want("sent")
	for _, p := range silent {
		p.wantStatus(1008)
	}
	for _, c := range half {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, c); err != nil && isTimeout(err) {
			t.Fatal("a half-open handshake stays")
		}
	}
	eventually(t, "goroutines are gone", func() bool { return runtime.NumGoroutine() < before+20 })
	c.up("2")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
