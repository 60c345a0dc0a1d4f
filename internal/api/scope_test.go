package api

import (
	"strings"
	"testing"

	"github.com/posthorn/posthorn"
)

// TestScopes is the table of who may call what: every call by every kind of caller.
func TestScopes(t *testing.T) {
	const (
		ok   = 0 // carried out
		auth = 401
		deny = 403
		hide = 404
	)
	callers := []string{nobody, bad, readKey, writer, admin, anna, carla} // anna is a member of c1, carla is not
	for _, c := range []struct {
		method, path, body string
		want               [7]int
	}{
		{"POST", "/users", `{"user":"anna"}`, [7]int{auth, auth, deny, ok, ok, ok, deny}},
		{"GET", "/users", "", [7]int{auth, auth, ok, deny, ok, deny, deny}},
		{"POST", "/tokens", `{"user":"anna"}`, [7]int{auth, auth, deny, deny, ok, deny, deny}},
		{"DELETE", "/devices/anna/phone", "", [7]int{auth, auth, deny, deny, ok, deny, deny}},
		{"POST", "/keys", `{"name":"k","scopes":["read"]}`, [7]int{auth, auth, deny, deny, ok, deny, deny}},
		{"GET", "/keys", "", [7]int{auth, auth, deny, deny, ok, deny, deny}},
		{"DELETE", "/keys/1", "", [7]int{auth, auth, deny, deny, ok, deny, deny}},
		{"POST", "/conversations", `{"kind":"group"}`, [7]int{auth, auth, deny, ok, ok, ok, ok}},
		{"GET", "/conversations/c1", "", [7]int{auth, auth, ok, deny, ok, ok, hide}},
		{"PATCH", "/conversations/c1", `{"title":"t"}`, [7]int{auth, auth, deny, ok, ok, ok, hide}},
		{"GET", "/users/anna/conversations", "", [7]int{auth, auth, ok, deny, ok, ok, deny}},
		{"POST", "/conversations/c1/members", `{"users":["dora"]}`, [7]int{auth, auth, deny, ok, ok, ok, hide}},
		{"DELETE", "/conversations/c1/members/ben", "", [7]int{auth, auth, deny, ok, ok, ok, hide}},
		{"GET", "/conversations/c1/members", "", [7]int{auth, auth, ok, deny, ok, ok, hide}},
		{"POST", "/conversations/c1/events", `{"body":"x"}`, [7]int{auth, auth, deny, ok, ok, ok, hide}},
		{"GET", "/conversations/c1/events", "", [7]int{auth, auth, ok, deny, ok, ok, hide}},
		// What asks nobody who they are.
		{"GET", "/openapi.json", "", [7]int{}},
		{"POST", "/dev/token", `{"user":"anna"}`, [7]int{}},
	} {
		for i, who := range callers {
			t.Run(c.method+" "+c.path+" by "+who, func(t *testing.T) {
				h := open(t, func(cfg *Config) { cfg.Dev = true })
				h.keys = []Key{{ID: "1"}}
				headers := []string(nil)
				if c.path == "/dev/token" {
					headers = []string{"Origin", "http://localhost:3000"}
				}
				r := h.request(who, c.method, "/api/v1"+c.path, c.body, headers...)
				if r.Host = "example.com"; c.path == "/dev/token" {
					r.Host = "127.0.0.1:8080"
				}
				a := h.serve(t, r)
				switch want := c.want[i]; want {
				case ok:
					if a.status != 200 && a.status != 204 {
						t.Errorf("got %d: %s", a.status, a.raw)
					}
				case auth:
					a.want(t, want, posthorn.CodeUnauthenticated)
				case deny:
					a.want(t, want, posthorn.CodeForbidden)
				case hide:
					a.want(t, want, posthorn.CodeNotMember)
				}
				if c.want[i] == auth || (c.want[i] == deny && !strings.HasPrefix(c.path, "/users")) {
					if len(h.ops)+len(h.opens)+len(h.views)+len(h.tokens)+len(h.revoked) != 0 {
						t.Error("a port was asked all the same")
					}
				}
			})
		}
	}
}

// TestRefusedFirst: who may not call learns nothing about what they sent.
func TestRefusedFirst(t *testing.T) {
	h := open(t)
	for _, path := range []string{"/api/v1/conversations/%00/events?limit=0", "/api/v1/conversations/c1/events"} {
		h.call(t, nobody, "POST", path, "{", "Idempotency-Key", "").want(t, 401, posthorn.CodeUnauthenticated)
		h.call(t, readKey, "POST", path, "{", "Idempotency-Key", "").want(t, 403, posthorn.CodeForbidden)
	}
}

func TestAuthorizationHeader(t *testing.T) {
	h := open(t)
	h.call(t, nobody, "GET", "/api/v1/keys", "", "Authorization", "Bearer "+admin, "Authorization", "Bearer "+admin).want(t, 401, posthorn.CodeUnauthenticated)
	h.call(t, nobody, "GET", "/api/v1/keys?access_token="+admin, "").want(t, 401, posthorn.CodeUnauthenticated)
	h.call(t, nobody, "GET", "/api/v1/keys", "", "Cookie", "token="+admin).want(t, 401, posthorn.CodeUnauthenticated)
	h.authErr = posthorn.Errorf(posthorn.CodeUnavailable, "not now")
	h.call(t, admin, "GET", "/api/v1/keys", "").want(t, 503, posthorn.CodeUnavailable)
	h.authErr = posthorn.Errorf(posthorn.CodeRateLimited, "too many")
	h.call(t, admin, "GET", "/api/v1/keys", "").want(t, 429, posthorn.CodeRateLimited)
}
