package api

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/posthorn/posthorn"
)

// call is one admitted request.
type call struct {
	Caller
	r      *http.Request
	limits posthorn.Limits
	query  url.Values
	cmid   string
	made   bool // cmid is the server's, since the request named none
	body   []byte
}

// admit finds out who calls and whether they may, and only then looks at what they say. What it has let in needs no
// second look: ids in the path are ids, each query parameter came once.
func (s *Server) admit(ctx context.Context, rt route, r *http.Request) (*call, error) {
	c := &call{r: r, limits: s.limits}
	if rt.scope != "" {
		if err := s.identify(ctx, c, rt); err != nil {
			return nil, err
		}
	}
	for _, name := range rt.names() {
		if err := posthorn.CheckID(name, r.PathValue(name), s.limits.IDBytes); err != nil {
			return nil, err
		}
	}
	var err error
	if c.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return nil, posthorn.Errorf(posthorn.CodeBadFrame, "the query is malformed")
	}
	for _, p := range rt.query {
		if len(c.query[p.name]) > 1 {
			return nil, posthorn.Errorf(posthorn.CodeBadFrame, "%s is repeated", p.name)
		}
	}
	if rt.keyed {
		err = c.idempotencyKey()
	}
	return c, err
}

func (s *Server) identify(ctx context.Context, c *call, rt route) error {
	lines := c.r.Header.Values("Authorization")
	if len(lines) != 1 {
		return posthorn.Errorf(posthorn.CodeUnauthenticated, "exactly one Authorization header is required")
	}
	var err error
	switch c.Caller, err = s.cfg.Auth.Bearer(ctx, lines[0]); {
	case err != nil:
		return err
	case !c.Server() && c.User == "":
		return posthorn.Errorf(posthorn.CodeUnauthenticated, "nobody is calling")
	case !c.Server() && !rt.device:
		return posthorn.Errorf(posthorn.CodeForbidden, "this call needs a server key with scope %s", rt.scope)
	case c.Server() && !c.has(rt.scope):
		return posthorn.Errorf(posthorn.CodeForbidden, "this call needs the scope %s", rt.scope)
	}
	return nil
}

// idempotencyKey takes the cmid from its header, byte for byte. HTTP itself cuts spaces off both ends of a header's value.
func (c *call) idempotencyKey() error {
	switch lines := c.r.Header.Values("Idempotency-Key"); len(lines) {
	case 0:
		c.cmid, c.made = newCmid(), true
		return nil
	case 1:
		c.cmid = lines[0]
		return posthorn.CheckID("Idempotency-Key", c.cmid, c.limits.CmidBytes)
	}
	return posthorn.Errorf(posthorn.CodeBadFrame, "Idempotency-Key is repeated")
}

// newCmid makes a UUIDv7: its time lets retention remove the key some day.
func newCmid() string {
	var b [16]byte
	rand.Read(b[:])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(time.Now().UnixMilli())<<16)
	copy(b[:6], ms[:6])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// readBody takes the whole body, within the size of a frame and the time for a login.
func (c *call) readBody(w http.ResponseWriter) error {
	if ct := c.r.Header.Values("Content-Type"); len(ct) > 0 {
		if t, _, err := mime.ParseMediaType(ct[0]); err != nil || t != "application/json" || len(ct) > 1 {
			return &statusError{http.StatusUnsupportedMediaType, posthorn.Errorf(posthorn.CodeBadFrame, "the Content-Type must be application/json")}
		}
	}
	// An error means that the writer knows no deadline, as in tests: then there is none. net/http lifts it at the body's end.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(c.limits.LoginDeadline))
	b, err := io.ReadAll(http.MaxBytesReader(w, c.r.Body, int64(c.limits.FrameIn)))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return posthorn.Errorf(posthorn.CodeTooLarge, "the body is larger than %d bytes", c.limits.FrameIn)
	case err != nil:
		return &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: "the body did not arrive", Retry: time.Second, Err: err}
	}
	c.body = b
	return nil
}
