package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn"
)

// TestStatuses: every code has its status, and every error a problem document (checked by serve).
func TestStatuses(t *testing.T) {
	for code, status := range map[posthorn.Code]int{
		posthorn.CodeBadFrame: 400, posthorn.CodeUnauthenticated: 401, posthorn.CodeForbidden: 403, posthorn.CodeNotMember: 404,
		posthorn.CodeNotFound: 404, posthorn.CodeCmidReused: 409, posthorn.CodeCursorAhead: 409, posthorn.CodeCmidTooOld: 410,
		posthorn.CodeTooLarge: 413, posthorn.CodeRateLimited: 429, posthorn.CodeInternal: 500, posthorn.CodeUnavailable: 503,
	} {
		h := open(t)
		h.err = posthorn.Errorf(code, "why")
		h.call(t, admin, "GET", "/api/v1/conversations/c1", "").want(t, status, code)
		h.call(t, admin, "POST", "/api/v1/conversations/c1/events", `{"body":"x"}`).want(t, status, code)
		h.call(t, admin, "POST", "/api/v1/conversations", `{"kind":"group"}`).want(t, status, code)
		h.err = posthorn.Errorf(code, "") // a store that has no sentence for it
		h.call(t, admin, "POST", "/api/v1/users", `{"user":"u"}`).want(t, status, code)
	}
}

func TestRetry(t *testing.T) {
	h := open(t)
	h.err = &posthorn.Error{Code: posthorn.CodeRateLimited, Msg: "slow down", Retry: 1500 * time.Millisecond}
	a := h.call(t, admin, "POST", "/api/v1/conversations/c1/events", `{"body":"x"}`)
	if a.want(t, 429, posthorn.CodeRateLimited); a.num("retry_ms") != 1500 || a.header.Get("Retry-After") != "2" {
		t.Errorf("%s, Retry-After %s", a.raw, a.header.Get("Retry-After"))
	}
	if !uuid7.MatchString(a.str("cmid")) || a.str("cmid") != h.lastOp().Cmid {
		t.Errorf("the key that the server made is not told: %s", a.raw)
	}
	// The client's own key it knows; and a refusal is not worth a retry.
	if a = h.call(t, admin, "POST", "/api/v1/conversations/c1/events", `{"body":"x"}`, "Idempotency-Key", "k"); a.body["cmid"] != nil {
		t.Errorf("%s", a.raw)
	}
	h.err = posthorn.Errorf(posthorn.CodeForbidden, "no")
	if a = h.call(t, admin, "POST", "/api/v1/conversations/c1/events", `{"body":"x"}`); a.body["cmid"] != nil {
		t.Errorf("%s", a.raw)
	}
}

func TestUnknownOutcome(t *testing.T) {
	h := open(t)
	h.settle = func(op *posthorn.Op) { op.Done(posthorn.Outcome{Err: fmt.Errorf("commit: %w", posthorn.ErrUnknown)}) }
	a := h.call(t, anna, "POST", "/api/v1/conversations/c1/events", `{"body":"x"}`, "Idempotency-Key", "k")
	if a.want(t, 503, posthorn.CodeUnavailable); !strings.Contains(a.str("detail"), "the same Idempotency-Key") {
		t.Errorf("%s", a.raw)
	}
	// And with the same key the first answer comes.
	h.settle = nil
	h.write(&posthorn.Op{Kind: posthorn.KindMsg, Conv: "c1", Sender: "anna", Cmid: "k", Body: &[]string{"x"}[0]})
	if a = h.call(t, anna, "POST", "/api/v1/conversations/c1/events", `{"body":"x"}`, "Idempotency-Key", "k").ok(t); a.body["dup"] != true || a.num("seq") != 2 {
		t.Errorf("%s", a.raw)
	}
}

// TestWaitEnds: nobody waits longer than the store may take, nor longer than the client; the late Done hurts nobody.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		h.hold = true
		start := time.Now()
		h.call(t, anna, "POST", "/api/v1/conversations/c1/events", `{"body":"x"}`).want(t, 503, posthorn.CodeUnavailable)
		if d := time.Since(start); d != 40*time.Second {
			t.Errorf("waited %v", d)
		}
		h.lastOp().Done(posthorn.Outcome{Seq: 2})

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h.serve(t, h.request(anna, "PATCH", "/api/v1/conversations/c1", `{"title":"x"}`).WithContext(ctx)).want(t, 503, posthorn.CodeUnavailable)
		h.lastOp().Done(posthorn.Outcome{Seq: 2})
	})
	h := open(t)
	h.err = fmt.Errorf("page: %w", context.DeadlineExceeded)
	h.call(t, anna, "GET", "/api/v1/conversations/c1/events", "").want(t, 503, posthorn.CodeUnavailable)
}

// TestInternal: the cause goes to the log and nowhere else.
func TestInternal(t *testing.T) {
	h := open(t)
	h.err = errors.New(`pq: relation "events" does not exist`)
	a := h.call(t, admin, "GET", "/api/v1/conversations/c1", "")
	if a.want(t, 500, posthorn.CodeInternal); strings.Contains(a.raw, "relation") {
		t.Errorf("the cause is shown: %s", a.raw)
	}
	if !strings.Contains(h.logs.String(), "relation") {
		t.Error("the cause is not logged")
	}
	h.err, h.panics = nil, "out of cheese"
	a = h.call(t, anna, "GET", "/api/v1/users/anna/conversations", "")
	if a.want(t, 500, posthorn.CodeInternal); strings.Contains(a.raw, "cheese") || !strings.Contains(h.logs.String(), "cheese") {
		t.Errorf("%s", a.raw)
	}
	h.panics = http.ErrAbortHandler
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("an aborted handler ends with %v", p)
			}
		}()
		h.call(t, anna, "GET", "/api/v1/users/anna/conversations", "")
	}()
	// A text that JSON cannot hold does not take the answer with it.
	h.panics, h.err = nil, posthorn.Errorf(posthorn.CodeNotFound, "no \xff")
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, h.request(admin, "GET", "/api/v1/conversations/c1", ""))
	if w.Code != 404 || !strings.Contains(w.Body.String(), `"NOT_FOUND"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestUnknownCalls(t *testing.T) {
	h := open(t)
	for _, path := range []string{"/", "/api/v1", "/api/v1/", "/api/v1/nothing", "/api/v1/users/", "/api/v1/users/anna", "/api/v2/users", "/API/v1/users",
		"/api/v1//users", "/api/v1/./users", "/api/v1/x/../users", "/api/v1/conversations//events", "/metrics", "/docs", "/api/v1/dev/token",
		"/api/v1/openapi.yaml", "/api/v1/schemas/Problem", "/api/v1/conversations/c1/events/1", "/api/v1/conversations/c1/messages", "/api/v1/settings"} {
		for _, method := range []string{"GET", "POST", "DELETE", "BREW"} {
			if a := h.call(t, admin, method, path, ""); a.status != 404 || a.str("code") != "NOT_FOUND" || a.header.Get("Location") != "" {
				t.Errorf("%s %s: %d %s", method, path, a.status, a.raw)
			}
		}
	}
	for _, c := range [][3]string{{"PUT", "/api/v1/users", "GET, HEAD, POST"}, {"GET", "/api/v1/tokens", "POST"}, {"POST", "/healthz", "GET, HEAD"},
		{"OPTIONS", "/api/v1/users", "GET, HEAD, POST"}, {"BREW", "/api/v1/conversations/c1", "GET, HEAD, PATCH"}, {"DELETE", "/api/v1/openapi.json", "GET, HEAD"}} {
		a := h.call(t, nobody, c[0], c[1], "")
		if a.want(t, 405, posthorn.CodeNotFound); a.header.Get("Allow") != c[2] {
			t.Errorf("%s %s: Allow %q", c[0], c[1], a.header.Get("Allow"))
		}
	}
}

func TestHeaders(t *testing.T) {
	h := open(t)
	for _, a := range []answer{h.call(t, admin, "GET", "/api/v1/keys", ""), h.call(t, nobody, "GET", "/api/v1/keys", ""), h.call(t, nobody, "GET", "/nothing", "")} {
		for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Access-Control-Allow-Origin": "", "Set-Cookie": ""} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%d: %s is %q", a.status, name, got)
			}
		}
	}
}

func TestHealth(t *testing.T) {
	h := open(t)
	if a := h.call(t, nobody, "GET", "/healthz", "").ok(t); a.raw != `{"ok":true}` {
		t.Errorf("%s", a.raw)
	}
	if a := h.call(t, nobody, "GET", "/readyz", "").ok(t); a.raw != `{"ready":true,"conditions":[{"name":"database","ok":true}]}` {
		t.Errorf("%s", a.raw)
	}
	h.ready = append(h.ready, Condition{Name: "doorbell", Why: "no proof yet"}, Condition{Name: "tail", Why: "behind"})
	a := h.call(t, nobody, "GET", "/readyz", "")
	if a.want(t, 503, posthorn.CodeUnavailable); a.str("detail") != "not ready: doorbell, tail" || !strings.Contains(a.raw, `{"name":"doorbell","ok":false,"why":"no proof yet"}`) {
		t.Errorf("%s", a.raw)
	}
	h.call(t, nobody, "GET", "/healthz", "").ok(t)
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("a server without ports")
	}
	f := newFake()
	for _, o := range []string{"*", "null", "https://*.example.com", "https://example.com/", "HTTPS://example.com", "https://Example.com", "https://example.com:443",
		"http://example.com:80", "example.com", "https://", "https://u@example.com", "ftp://example.com", "https://example.com?x", " https://example.com"} {
		if _, err := New(Config{Log: f, Entries: f, Directory: f, Keyring: f, Auth: f, Ready: f, AllowedOrigins: []string{o}}); err == nil {
			t.Errorf("allowed origin %q is taken", o)
		}
	}
}
