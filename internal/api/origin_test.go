package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/posthorn/posthorn"
)

var lookalikes = map[string][]string{
	"a longer name": {"https://evilchat.example.com"}, "a longer end": {"https://chat.example.com.evil.io"}, "another scheme": {"http://chat.example.com"},
	"another port": {"https://chat.example.com:8443"}, "the default port": {"https://chat.example.com:443"}, "null": {"null"}, "upper case": {"HTTPS://CHAT.EXAMPLE.COM"},
	"some upper case": {"https://Chat.example.com"}, "a path": {"https://chat.example.com/"}, "a user": {"https://chat.example.com@evil.io"}, "a dot": {"https://chat.example.com."},
	"empty": {""}, "two lines": {"https://chat.example.com", "https://chat.example.com"}, "two in a line": {"https://chat.example.com https://evil.io"}, "missing": nil,
}

// TestB75_OriginOverHTTP: only the exact origin may read answers, and only with a token; a cookie is nothing here.
func TestB75_OriginOverHTTP(t *testing.T) {
	h := open(t, func(c *Config) { c.AllowedOrigins = []string{"https://chat.example.com", "http://localhost:3000"} })
	allowed := func(a answer) string { return a.header.Get("Access-Control-Allow-Origin") }
	for _, cookie := range []string{"", "posthorn=" + anna} {
		with := func(origins []string, more ...string) []string {
			for _, o := range origins {
				more = append(more, "Origin", o)
			}
			if cookie != "" {
				more = append(more, "Cookie", cookie)
			}
			return more
		}
		for name, origins := range lookalikes {
			t.Run(name+" "+cookie, func(t *testing.T) {
				// Programs send any Origin or none; the token is what counts.
				if a := h.call(t, anna, "GET", "/api/v1/conversations/c1", "", with(origins)...).ok(t); allowed(a) != "" {
					t.Errorf("allowed %q", allowed(a))
				}
				h.call(t, nobody, "GET", "/api/v1/conversations/c1", "", with(origins)...).want(t, 401, posthorn.CodeUnauthenticated)
				a := h.call(t, nobody, "OPTIONS", "/api/v1/conversations/c1", "", with(origins, "Access-Control-Request-Method", "PATCH")...)
				if a.want(t, 405, posthorn.CodeNotFound); allowed(a) != "" || a.header.Get("Access-Control-Allow-Headers") != "" {
					t.Errorf("the preflight is answered: %v", a.header)
				}
			})
		}
		for _, o := range []string{"https://chat.example.com", "http://localhost:3000"} {
			a := h.call(t, anna, "GET", "/api/v1/conversations/c1", "", with([]string{o})...).ok(t)
			if allowed(a) != o || a.header.Get("Vary") != "Origin" || a.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s: %v", o, a.header)
			}
			if a := h.call(t, nobody, "GET", "/api/v1/conversations/c1", "", with([]string{o})...); allowed(a) != o {
				t.Errorf("%s may not read the error: %v", o, a.header)
			}
			a = h.call(t, nobody, "OPTIONS", "/api/v1/conversations/c1", "", with([]string{o}, "Access-Control-Request-Method", "PATCH")...)
			if a.status != 204 || allowed(a) != o || !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "Authorization") {
				t.Errorf("preflight of %s: %d %v", o, a.status, a.header)
			}
		}
	}
	t.Run("none by default", func(t *testing.T) {
		if a := open(t).call(t, anna, "GET", "/api/v1/conversations/c1", "", "Origin", "https://chat.example.com").ok(t); allowed(a) != "" || a.header.Get("Vary") != "" {
			t.Errorf("%v", a.header)
		}
	})
}

// TestB75_NoCredentialInLogs: wherever a credential is put, it is in no log line and in no answer.
func TestB75_NoCredentialInLogs(t *testing.T) {
	const token = "pht_c0nf1dent1al"
	h := open(t)
	var raw strings.Builder
	for _, a := range []answer{
		h.call(t, token, "GET", "/api/v1/keys", ""),
		h.call(t, nobody, "GET", "/api/v1/keys?token="+token, ""),
		h.call(t, nobody, "GET", "/api/v1/"+token, ""),
		h.call(t, admin, "GET", "/api/v1/conversations/"+token, ""),
		h.call(t, nobody, "GET", "/api/v1/keys", "", "Authorization", "Basic "+token),
		h.call(t, nobody, "GET", "/api/v1/keys", "", "Cookie", token),
		h.call(t, nobody, token, "/api/v1/keys", ""),
		h.call(t, anna, "POST", events, `{"body":"`+token+`","data":"`+token+`"}`),
		h.call(t, anna, "POST", events, `{"`+token+`":1,"`+token+`":1}`),
		h.call(t, anna, "POST", events, token),
		h.call(t, anna, "POST", events, `{"body":"x"}`, "Idempotency-Key", token+strings.Repeat("x", 64)),
		h.call(t, admin, "GET", "/api/v1/users?limit="+token, ""),
	} {
		raw.WriteString(a.raw)
	}
	h.err = fmt.Errorf("database gone")
	raw.WriteString(h.call(t, admin, "POST", "/api/v1/users?x="+token, `{"user":"`+token+`"}`).raw)
	if strings.Contains(raw.String(), token) {
		t.Errorf("in an answer: %s", raw.String())
	}
	logged := h.logs.String()
	if strings.Contains(logged, token) || strings.Contains(logged, anna) || strings.Contains(logged, admin) {
		t.Errorf("in the log: %s", logged)
	}
	for _, want := range []string{"method=GET route=/api/v1/keys status=401", "method=other route=none status=405", "route=none status=404", "route=/api/v1/conversations/{conv} status=404", "duration="} {
		if !strings.Contains(logged, want) {
			t.Errorf("no line with %s in:\n%s", want, logged)
		}
	}
}

func TestDevToken(t *testing.T) {
	dev := func(c *Config) { c.Dev = true }
	post := func(h *house, host, body string, headers ...string) answer {
		t.Helper()
		r := h.request(nobody, "POST", "/api/v1/dev/token", body, headers...)
		r.Host = host
		return h.serve(t, r)
	}
	h := open(t, dev)
	if a := post(h, "localhost:8080", `{"user":"zoe"}`).ok(t); a.raw != `{"token":"pht_made","user":"zoe","device":"dev_made","expires_at":1767000000000}` || h.users["zoe"].User != "zoe" {
		t.Errorf("%s", a.raw)
	}
	if a := post(h, "localhost:8080", `{"user":"zoe","device":"tab"}`).ok(t); a.str("device") != "tab" {
		t.Errorf("%s", a.raw)
	}
	post(h, "localhost", `{}`).want(t, 400, posthorn.CodeBadFrame)
	for _, host := range []string{"127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "[::1]", "LOCALHOST:1"} {
		post(h, host, `{"user":"zoe"}`).ok(t)
	}
	for _, o := range []string{"http://localhost:3000", "http://127.0.0.1:8080", "https://[::1]"} {
		post(h, "localhost:8080", `{"user":"zoe"}`, "Origin", o, "Sec-Fetch-Site", "same-origin").ok(t)
	}
	asked := len(h.tokens)
	for _, host := range []string{"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.1.2:8080", "0.0.0.0:8080", "[::]:8080", "", "localhost.", "127.0.0.1@evil.example"} {
		post(h, host, `{"user":"zoe"}`).want(t, 403, posthorn.CodeForbidden)
	}
	for _, o := range [][]string{{"https://evil.example"}, {"null"}, {""}, {"http://localhost.evil.example"}, {"file://localhost"}, {"http://localhost:3000", "http://localhost:3000"}, {"http://127.0.0.1.evil.example"}} {
		var headers []string
		for _, v := range o {
			headers = append(headers, "Origin", v)
		}
		post(h, "localhost:8080", `{"user":"zoe"}`, headers...).want(t, 403, posthorn.CodeForbidden)
	}
	post(h, "localhost:8080", `{"user":"zoe"}`, "Sec-Fetch-Site", "cross-site").want(t, 403, posthorn.CodeForbidden)
	if len(h.tokens) != asked {
		t.Error("a token was made all the same")
	}
	post(open(t), "localhost:8080", `{"user":"zoe"}`).want(t, 404, posthorn.CodeNotFound)
}
