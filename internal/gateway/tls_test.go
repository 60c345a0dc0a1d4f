package gateway

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestAccept_TLS: where the gateway ends TLS itself, the same origin is an https one; and a peer that does not read
// cannot hold up a Stop that must end at once.
func TestAccept_TLS(t *testing.T) {
	h := build(t, limits())
	h.ts.Close()
	h.ts = httptest.NewTLSServer(h.g)
	host := strings.TrimPrefix(h.ts.URL, "https://")
	dial := func(origin string) (*client, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: h.ts.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
		ws, res, err := websocket.Dial(ctx, "wss://"+host, &websocket.DialOptions{
			Subprotocols: []string{subprotocol}, HTTPClient: &http.Client{Transport: tr}, HTTPHeader: http.Header{"Origin": {origin}},
		})
		if err != nil {
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("status %d", res.StatusCode)
			}
			return nil, err
		}
		t.Cleanup(func() { _ = ws.CloseNow() })
		return &client{t: t, ws: ws}, nil
	}
	if _, err := dial("http://" + host); err == nil {
		t.Error("http is the same origin")
	}
	c, err := dial("https://" + host)
	if err != nil {
		t.Fatal(err)
	}
	c.login("ada/d")
	c.up("1")
	c.subscribe()
	for range 400 { // never read
		h.log.say("c", strings.Repeat("x", 30_000))
	}
	began := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = h.g.Stop(ctx) // ErrCut where it took longer than the grace; the clean-up of the house waits for the rest
	eventually(t, "the socket is gone", func() bool { return h.g.Stats().Sockets == 0 })
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("took %s", d)
	}
}
