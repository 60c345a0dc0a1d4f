package gateway

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/coder/websocket"
	"github.com/posthorn/posthorn"
)

const subprotocol = "posthorn.v1"

// ServeHTTP answers GET /api/v1/ws: it upgrades the connection and returns, or refuses it with a problem document. The
// header deadline for half-open handshakes is the http.Server's; silence after the upgrade is login's.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := g.vet(r); p != nil {
		g.n.refused.Add(1)
		p.write(w)
		return
	}
	if !g.enter() {
		g.n.refused.Add(1)
		p := &problem{Status: http.StatusServiceUnavailable, Code: posthorn.CodeUnavailable, Detail: "this gateway is shutting down", retry: 1}
		p.write(w)
		return
	}
	s, err := g.upgrade(w, r)
	if err != nil { // the library has answered
		g.n.refused.Add(1)
		g.conns.Add(-2)
		return
	}
	go s.readLoop()
	go s.writeLoop()
}

// enter counts a reader and a writer, unless the gateway does not serve.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state != serving {
		return false
	}
	g.conns.Add(2)
	return true
}

func (g *Gateway) vet(r *http.Request) *problem {
	switch {
	case !g.originAllowed(r):
		g.report(slog.LevelWarn, "origin refused", "origin", clip(strings.Join(r.Header.Values("Origin"), " | "), 200), "host", clip(r.Host, 200))
		return &problem{Status: http.StatusForbidden, Code: posthorn.CodeForbidden, Detail: "this origin may not connect"}
	case r.URL.Query().Has("token"):
		// Refused rather than ignored, so that nobody ships a client whose tokens end up in every access log.
		return &problem{Status: http.StatusBadRequest, Code: posthorn.CodeBadFrame, Detail: "the token belongs into the hello frame, never into the URL"}
	case !offers(r, subprotocol):
		return &problem{Status: http.StatusBadRequest, Code: posthorn.CodeBadFrame, Detail: "the WebSocket subprotocol " + subprotocol + " is required"}
	}
	return nil
}

func (g *Gateway) upgrade(w http.ResponseWriter, r *http.Request) (*socket, error) {
	s := newSocket(g)
	mode := websocket.CompressionDisabled
	if g.cfg.Compression {
		mode = websocket.CompressionNoContextTakeover
	}
	hj := &hijacker{ResponseWriter: w, s: s}
	ws, err := websocket.Accept(hj, r, &websocket.AcceptOptions{
		Subprotocols:    []string{subprotocol},
		CompressionMode: mode,
		// The library compares hosts without scheme and case; originAllowed has judged already, and more strictly.
		InsecureSkipVerify: true,
		OnPingReceived:     s.pinged,
	})
	if err != nil {
		s.cancel()
		return nil, err
	}
	ws.SetReadLimit(int64(g.limits.FrameIn)) // counts the reassembled, inflated message; beyond it the library closes with 1009
	s.ws, s.raw = ws, hj.raw
	g.add(s)
	return s, nil
}

// originAllowed decides who may upgrade, before the upgrade:
//
//   - No Origin header: allowed. Programs send none, and the only credential is the token in the hello frame, which no
//     foreign page has; cookies are not looked at.
//   - One Origin header: it must equal, byte for byte, an entry of AllowedOrigins ("https://chat.example.com", port only
//     where it is not the scheme's default), or the scheme, host and port by which this server was asked.
//   - Anything else (two Origin lines, an empty one, null, another port or scheme, a longer or shorter host): refused.
//
// Browsers write Origin in lower case and without a default port, so nothing is folded: an upper-case Origin comes from
// no browser and is refused, and so is an upper-case entry never matched. Behind a proxy that ends TLS this server is
// asked by http; the public https origin then belongs into AllowedOrigins. No X-Forwarded header is trusted.
func (g *Gateway) originAllowed(r *http.Request) bool {
	lines := r.Header.Values("Origin")
	if len(lines) == 0 {
		return true
	}
	if len(lines) > 1 {
		return false
	}
	if g.origins[lines[0]] {
		return true
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return r.Host != "" && lines[0] == scheme+r.Host
}

func offers(r *http.Request, want string) bool {
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for _, p := range strings.Split(line, ",") {
			if strings.TrimSpace(p) == want {
				return true
			}
		}
	}
	return false
}

// problem is an RFC 9457 document with the code of the protocol.
type problem struct {
	Title  string        `json:"title"`
	Status int           `json:"status"`
	Detail string        `json:"detail"`
	Code   posthorn.Code `json:"code"`
	retry  int           // seconds
}

func (p *problem) write(w http.ResponseWriter) {
	p.Title = http.StatusText(p.Status)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.retry))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the peer may be gone
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
