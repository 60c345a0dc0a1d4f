package api

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/posthorn/posthorn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Who calls in the tests; the fake knows these by their tokens.
const (
	nobody  = ""
	bad     = "pht_unknown"
	readKey = "phk_read"
	writer  = "phk_write"
	admin   = "phk_admin"
	anna    = "pht_anna"
	ben     = "pht_ben"
	carla   = "pht_carla" // in no conversation
)

// house is a server on the fake, with everything that it logged.
type house struct {
	*fake
	handler http.Handler
	logs    *logs
}

type logs struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func open(t *testing.T, change ...func(*Config)) *house {
	t.Helper()
	h := &house{fake: newFake(), logs: &logs{}}
	cfg := Config{Log: h.fake, Entries: h.fake, Directory: h.fake, Keyring: h.fake, Auth: h.fake, Ready: h.fake,
		Logger: slog.New(slog.NewTextHandler(h.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.handler = s.Handler()
	return h
}

// answer is a response, its body decoded.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// call makes a request; headers are name, value pairs, added in order.
func (h *house) call(t *testing.T, token, method, path, body string, headers ...string) answer {
	t.Helper()
	return h.serve(t, h.request(token, method, path, body, headers...))
}

func (h *house) request(token, method, path, body string, headers ...string) *http.Request {
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, path, in)
	if token != nobody {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header[headers[i]] = append(r.Header[headers[i]], headers[i+1])
	}
	return r
}

func (h *house) serve(t *testing.T, r *http.Request) answer {
	t.Helper()
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	a := answer{status: w.Code, header: w.Header(), raw: w.Body.String()}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &a.body); err != nil {
			t.Fatalf("%s %s: %d with no JSON object: %q", r.Method, r.URL.Path, a.status, a.raw)
		}
	}
	if a.status >= 400 {
		a.checkProblem(t)
	}
	return a
}

// checkProblem holds every error to RFC 9457 and to carrying a code.
func (a answer) checkProblem(t *testing.T) {
	t.Helper()
	status, _ := a.body["status"].(float64)
	code, _ := a.body["code"].(string)
	detail, _ := a.body["detail"].(string)
	if a.header.Get("Content-Type") != "application/problem+json" || a.body["type"] != "about:blank" || int(status) != a.status ||
		a.body["title"] != http.StatusText(a.status) || code == "" || detail == "" {
		t.Errorf("no problem document: %d %s %s", a.status, a.header.Get("Content-Type"), a.raw)
	}
	retry := posthorn.Code(code) == posthorn.CodeUnavailable || posthorn.Code(code) == posthorn.CodeRateLimited
	if ms, _ := a.body["retry_ms"].(float64); (ms > 0) != retry || (a.header.Get("Retry-After") != "") != retry {
		t.Errorf("retry_ms %v, Retry-After %q with %s", a.body["retry_ms"], a.header.Get("Retry-After"), code)
	}
	if (a.header.Get("WWW-Authenticate") == "Bearer") != (a.status == http.StatusUnauthorized) {
		t.Errorf("WWW-Authenticate %q with %d", a.header.Get("WWW-Authenticate"), a.status)
	}
}

func (a answer) want(t *testing.T, status int, code posthorn.Code) {
	t.Helper()
	got, _ := a.body["code"].(string)
	if a.status != status || got != string(code) {
		t.Errorf("got %d %s, want %d %s: %s", a.status, got, status, code, a.raw)
	}
}

func (a answer) ok(t *testing.T) answer {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("got %d: %s", a.status, a.raw)
	}
	return a
}

// num is a number of the body; -1 where there is none.
func (a answer) num(name string) int64 {
	n, ok := a.body[name].(float64)
	if !ok {
		return -1
	}
	return int64(n)
}

func (a answer) str(name string) string {
	s, _ := a.body[name].(string)
	return s
}
