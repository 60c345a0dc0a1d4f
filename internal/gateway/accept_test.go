package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// TestB75_OriginThatOnlyLooksRight: the origin is compared whole, before the upgrade, with and without a cookie; a token
// in the URL is refused, and no credential is logged.
func TestB75_OriginThatOnlyLooksRight(t *testing.T) {
	h := build(t, limits())
	host := strings.TrimPrefix(h.ts.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	for _, c := range []struct {
		name   string
		lines  []string
		status int
	}{
		{"allowed", []string{"Origin: https://chat.example.com"}, 101},
		{"missing", nil, 101},
		{"same origin", []string{"Origin: http://" + host}, 101},
		{"longer host", []string{"Origin: https://evilchat.example.com"}, 403},
		{"host as a prefix", []string{"Origin: https://chat.example.com.evil.io"}, 403},
		{"http", []string{"Origin: http://chat.example.com"}, 403},
		{"other port", []string{"Origin: https://chat.example.com:8443"}, 403},
		{"default port written out", []string{"Origin: https://chat.example.com:443"}, 403},
		{"null", []string{"Origin: null"}, 403},
		{"empty", []string{"Origin: "}, 403},
		{"upper-case host", []string{"Origin: https://CHAT.example.com"}, 403},
		{"upper-case scheme", []string{"Origin: HTTPS://chat.example.com"}, 403},
		{"with a path", []string{"Origin: https://chat.example.com/"}, 403},
		{"with a user", []string{"Origin: https://chat.example.com@evil.io"}, 403},
		{"two lines", []string{"Origin: https://chat.example.com", "Origin: https://evil.io"}, 403},
		{"two lines, both good", []string{"Origin: https://chat.example.com", "Origin: https://chat.example.com"}, 403},
		{"two in one line", []string{"Origin: https://chat.example.com, https://evil.io"}, 403},
		{"same host, other port", []string{"Origin: http://127.0.0.1"}, 403},
		{"same host, https", []string{"Origin: https://" + host}, 403},
		{"upper-case Host", []string{"Host: LOCALHOST:" + port, "Origin: http://localhost:" + port}, 403},
		{"foreign page, forged forwarding", []string{"Origin: https://evil.io", "X-Forwarded-Host: evil.io", "X-Forwarded-Proto: https"}, 403},
	} {
		for _, cookie := range []string{"", "Cookie: session=s3cret-cookie"} {
			t.Run(c.name+"/"+cookie, func(t *testing.T) {
				lines := append([]string{"Sec-WebSocket-Protocol: " + subprotocol}, c.lines...)
				if cookie != "" {
					lines = append(lines, cookie)
				}
				if res := h.raw().ask("/api/v1/ws", lines...); res.StatusCode != c.status {
					t.Errorf("status %d, want %d", res.StatusCode, c.status)
				}
			})
		}
	}
	t.Run("a cookie is no credential", func(t *testing.T) {
		p := h.raw()
		p.upgrade("Cookie: session=ada")
		p.say(`{"t":"sub","rid":"1"}`)
		p.wantStatus(4005)
	})
	t.Run("token in the URL", func(t *testing.T) {
		res := h.raw().ask("/api/v1/ws?token=s3cret-url", "Sec-WebSocket-Protocol: "+subprotocol)
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("status %d", res.StatusCode)
		}
	})
	c := h.connect(false, false)
	c.say(`{"t":"hello","rid":"h","token":"bad-s3cret-token","device":"d"}`)
	c.wantClose(4005)
	good := h.enter("s3cret-good/d")
	good.say(`{"t":"hello","rid":"h","token":"s3cret-again","device":"d"}`)
	good.wantError("BAD_FRAME", "h")
	eventually(t, "the refused origins are logged", func() bool { return strings.Contains(h.out.String(), "origin refused") })
	if log := h.out.String(); strings.Contains(strings.ReplaceAll(log, "user=s3cret-good", ""), "s3cret") {
		t.Errorf("a credential is in the log:\n%s", log)
	}
}

func TestAccept_SubprotocolIsRequired(t *testing.T) {
	h := build(t, limits())
	for proto, status := range map[string]int{
		"": 400, "posthorn.v2": 400, "POSTHORN.V1": 400, "posthorn.v1": 101, "x, posthorn.v1": 101,
	} {
		res := h.raw().ask("/api/v1/ws", "Sec-WebSocket-Protocol: "+proto)
		if res.StatusCode != status {
			t.Errorf("%q: status %d, want %d", proto, res.StatusCode, status)
		}
		if status == 101 && res.Header.Get("Sec-WebSocket-Protocol") != subprotocol {
			t.Errorf("%q: answered %q", proto, res.Header.Get("Sec-WebSocket-Protocol"))
		}
		if status == 400 && res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%q: no problem document", proto)
		}
	}
}

// TestAccept_NoUpgrade: what is no handshake is answered and leaves nothing behind.
func TestAccept_NoUpgrade(t *testing.T) {
	h := build(t, limits())
	req, _ := http.NewRequest(http.MethodGet, h.ts.URL, nil)
	req.Header.Set("Sec-WebSocket-Protocol", subprotocol)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("status %d", res.StatusCode)
	}
	if s := h.g.Stats(); s.Refused != 1 || s.Accepted != 0 || s.Sockets != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAccept_OnlyWhileServing(t *testing.T) {
	h := build(t, limits())
	if err := h.g.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	res := h.raw().ask("/api/v1/ws", "Sec-WebSocket-Protocol: "+subprotocol)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
}
