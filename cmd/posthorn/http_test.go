package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// request makes an HTTP call as whoever the bearer is.
func (n *node) request(t *testing.T, bearer, method, path, key, body string) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, n.server.url()+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// call is request with the answer decoded.
func (n *node) call(t *testing.T, bearer, method, path, key, body string) (status int, answer map[string]any) {
	t.Helper()
	status, b := n.request(t, bearer, method, path, key, body)
	if len(b) > 0 {
		if err := json.Unmarshal(b, &answer); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	return status, answer
}

// The life of a conversation over HTTP on a real database, with sockets that watch it.
func TestHTTPConversation(t *testing.T) {
	n := serve(t, pgtest.URL(t))
	admin := strings.Repeat("k", 40)
	ok := func(bearer, method, path, key, body string) map[string]any {
		t.Helper()
		status, a := n.call(t, bearer, method, path, key, body)
		if status/100 != 2 {
			t.Fatalf("%s %s: %d %v", method, path, status, a)
		}
		return a
	}
	refused := func(bearer, method, path, key, body string, want int, code posthorn.Code) {
		t.Helper()
		if status, a := n.call(t, bearer, method, path, key, body); status != want || a["code"] != string(code) {
			t.Fatalf("%s %s: %d %v, want %d %s", method, path, status, a, want, code)
		}
	}
	for _, u := range []string{"ana", "bo", "cy"} {
		ok(admin, "POST", "/users", "", `{"user":"`+u+`","name":"The `+u+`"}`)
	}
	bo := ok(admin, "POST", "/tokens", "", `{"user":"bo","device":"phone"}`)["token"].(string)
	refused(bo, "POST", "/tokens", "", `{"user":"ana"}`, 403, posthorn.CodeForbidden)
	refused("nonsense", "GET", "/users", "", "", 401, posthorn.CodeUnauthenticated)

	socket := n.dial(t, nil)
	ask[*wire.Welcome](socket, &wire.Hello{Token: bo, Device: "phone"})
	ask[*wire.Subbed](socket, &wire.Sub{})
	made := ok(admin, "POST", "/conversations", "k1", `{"kind":"group","conv":"c1","title":"One","members":["ana","bo"]}`)
	if again := ok(admin, "POST", "/conversations", "k1", `{"kind":"group","conv":"c1","title":"One","members":["ana","bo"]}`); again["dup"] != true || made["dup"] != false {
		t.Fatalf("opened %v, again %v", made, again)
	}
	refused(admin, "POST", "/conversations", "k2", `{"kind":"group","conv":"c1","members":["ana"]}`, 409, posthorn.CodeCmidReused)
	frame[*wire.Conv](socket, nil)

	if e := ok(admin, "GET", "/conversations/c1", "", ""); e["title"] != "One" || e["head"] != 1.0 {
		t.Fatalf("as a server key: %v", e)
	}
	sent := ok(admin, "POST", "/conversations/c1/events", "m1", `{"sender":"ana","body":"hello","data":{"n":1}}`)
	if ev := frame(socket, func(e *wire.Event) bool { return e.Ev.Kind == posthorn.KindMsg }); !ev.Ev.ViaServer || ev.Ev.Seq != int64(sent["seq"].(float64)) || string(ev.Ev.Data) != `{"n":1}` {
		t.Fatalf("pushed: %+v", ev)
	}
	refused(admin, "POST", "/conversations/c1/events", "m2", `{"sender":"cy","body":"x"}`, 404, posthorn.CodeNotMember)
	refused(bo, "POST", "/conversations/c1/members", "a1", `{"users":["cy"]}`, 403, posthorn.CodeForbidden)
	ok(admin, "POST", "/conversations/c1/members", "a1", `{"users":["cy"],"role":"admin"}`)
	ok(admin, "PATCH", "/conversations/c1", "t1", `{"title":"Two"}`)
	if meta := frame(socket, func(e *wire.Event) bool { return e.Ev.Kind == posthorn.KindMeta }); string(meta.Ev.Data) == "" {
		t.Fatalf("meta: %+v", meta)
	}
	if l := ok(bo, "GET", "/users/bo/conversations", "", ""); len(l["convs"].([]any)) != 1 || l["convs"].([]any)[0].(map[string]any)["title"] != "Two" {
		t.Fatalf("bo's list: %v", l)
	}
	if m := ok(bo, "GET", "/conversations/c1/members?limit=2", "", ""); len(m["members"].([]any)) != 2 || m["next"] == nil {
		t.Fatalf("members: %v", m)
	}
	ok(admin, "DELETE", "/conversations/c1/members/cy", "r1", "")
	if p := ok(bo, "GET", "/conversations/c1/events?after=0&limit=2", "", ""); len(p["events"].([]any)) != 2 || p["more"] != true || p["head"] != 5.0 {
		t.Fatalf("page: %v", p)
	}
	ok(bo, "DELETE", "/conversations/c1/members/bo", "l1", "")
	refused(bo, "POST", "/conversations/c1/events", "m3", `{"body":"x"}`, 404, posthorn.CodeNotMember)
	refused(bo, "GET", "/conversations/nowhere", "", "", 404, posthorn.CodeNotMember)
	if strings.Contains(n.logs.String(), bo) || strings.Contains(n.logs.String(), admin) {
		t.Fatal("a credential stands in the log")
	}
}

// A revoked device loses its socket on every gateway, its token, and its frames.
func TestRevokedDeviceIsClosedEverywhere(t *testing.T) {
	n := serve(t, pgtest.URL(t))
	other := serve(t, n.url)
	bo := n.token(t, "bo", "phone")
	admin := strings.Repeat("k", 40)
	p := other.dial(t, nil)
	ask[*wire.Welcome](p, &wire.Hello{Token: bo, Device: "phone"})
	for range 2 { // legal twice
		if status, a := n.call(t, admin, "DELETE", "/devices/bo/phone", "", ""); status/100 != 2 {
			t.Fatalf("%d %v", status, a)
		}
	}
	if bye := frame[*wire.Bye](p, nil); bye.Code != posthorn.CodeUnauthenticated {
		t.Fatalf("%+v", bye)
	}
	q := n.dial(t, nil)
	q.refused(&wire.Hello{Token: bo, Device: "phone"}, posthorn.CodeUnauthenticated)
	if status, _ := n.call(t, admin, "DELETE", "/devices/bo/none", "", ""); status != 404 {
		t.Fatalf("an unknown device: %d", status)
	}
}

// What an operator watches is there, with what was counted.
func TestMetrics(t *testing.T) {
	n, ana, _, conv := pair(t)
	ana.send(conv, "m", "hello")
	resp, err := http.Get(n.server.url() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"posthorn_sent_total 1\n", "posthorn_sessions 2\n", "posthorn_suspended 0\n",
		"posthorn_notification_queue_usage ", "posthorn_doorbell_reconnects_total 0\n", "posthorn_audit_conversations_total 0\n", `posthorn_ready{condition="history"} 1`} {
		if !strings.Contains(string(b), line) {
			t.Errorf("%q is missing in\n%s", line, b)
		}
	}
}
