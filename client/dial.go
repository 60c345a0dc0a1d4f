package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

const (
	subprotocol = "posthorn.v1"
	socketPath  = "/api/v1/ws"
	readSlack   = 64 << 10 // above the largest frame that the server writes
)

// DialOptions are the settings of one connection; the zero value of each field is its default.
type DialOptions struct {
	HTTPClient   *http.Client  // default: http.DefaultClient
	Header       http.Header   // sent with the handshake, such as Origin
	WriteTimeout time.Duration // a write that takes longer ends the connection; default 10 s
	Buffer       int           // frames that wait for the reader of Frames; default 128; beyond it reading pauses
	Compression  bool          // offers permessage-deflate
	Tracer       Tracer
}

// Dial opens a connection. rawURL is the server's base or the address of its socket; nothing is sent on it yet.
func Dial(ctx context.Context, rawURL string, opts *DialOptions) (*Conn, error) {
	u, err := endpoint(rawURL)
	if err != nil {
		return nil, err
	}
	c := &Conn{done: make(chan struct{}), calls: map[string]chan wire.Frame{}}
	if opts != nil {
		c.opts = *opts
	}
	orDefault(&c.opts.WriteTimeout, posthorn.DefaultLimits().WriteDeadline)
	orDefault(&c.opts.Buffer, 128)
	orDefault(&c.opts.Tracer, Tracer(noTracer{}))
	c.frames = make(chan Inbound, c.opts.Buffer)
	wo := &websocket.DialOptions{HTTPClient: c.opts.HTTPClient, HTTPHeader: c.opts.Header, Subprotocols: []string{subprotocol}}
	if c.opts.Compression {
		wo.CompressionMode = websocket.CompressionNoContextTakeover
	}
	ws, resp, err := websocket.Dial(ctx, u, wo)
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("client: dial: HTTP status %d: %w", resp.StatusCode, err)
		}
		return nil, fmt.Errorf("client: dial: %w", err)
	}
	if ws.Subprotocol() != subprotocol {
		_ = ws.CloseNow()
		return nil, errors.New("client: dial: the server does not speak " + subprotocol)
	}
	ws.SetReadLimit(int64(posthorn.DefaultLimits().FrameOut + readSlack))
	c.ws, c.wrote = ws, time.Now()
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go c.read(reading)
	return c, nil
}

// endpoint gives the socket's address below a base.
func endpoint(base string) (string, error) {
	u, err := apiURL(base)
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(u.Path, socketPath) {
		u = u.JoinPath(socketPath)
	}
	return u.String(), nil
}

// apiURL reads the server's base address as http or https.
func apiURL(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("client: the server's URL: %w", err)
	}
	switch u.Scheme {
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	case "http", "https":
	default:
		return nil, fmt.Errorf("client: the server's URL must begin with ws, wss, http or https, not %q", u.Scheme)
	}
	if u.Host == "" {
		return nil, errors.New("client: the server's URL names no host")
	}
	return u, nil
}
