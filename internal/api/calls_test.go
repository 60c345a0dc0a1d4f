package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

func TestUsers(t *testing.T) {
	h := open(t)
	for _, u := range []string{"u1", "u2", "u3"} {
		h.call(t, writer, "POST", "/api/v1/users", fmt.Sprintf(`{"user":%q,"name":"N <&> %s"}`, u, u)).ok(t)
	}
	a := h.call(t, writer, "POST", "/api/v1/users", `{"user":"u1","avatar":"https://x/y.png"}`).ok(t)
	if a.raw != `{"user":"u1","name":"N <&> u1","avatar":"https://x/y.png"}` {
		t.Errorf("update answered %s", a.raw)
	}
	a = h.call(t, readKey, "GET", "/api/v1/users?limit=2", "").ok(t)
	if got, _ := a.body["users"].([]any); len(got) != 2 || a.str("next") != "u2" {
		t.Errorf("first page: %s", a.raw)
	}
	a = h.call(t, readKey, "GET", "/api/v1/users?after=u2", "").ok(t)
	if got, _ := a.body["users"].([]any); len(got) != 1 || a.body["next"] != nil {
		t.Errorf("second page: %s", a.raw)
	}
	if a = h.call(t, readKey, "GET", "/api/v1/users?after=zz", "").ok(t); a.raw != `{"users":[]}` {
		t.Errorf("empty page: %s", a.raw)
	}
	h.call(t, anna, "POST", "/api/v1/users", `{"user":"anna","name":"Anna"}`).ok(t)
	h.call(t, anna, "POST", "/api/v1/users", `{"user":"ben","name":"Not Ben"}`).want(t, 403, posthorn.CodeForbidden)
	h.call(t, writer, "POST", "/api/v1/users", `{"user":"u","name":"`+strings.Repeat("n", 513)+`"}`).want(t, 413, posthorn.CodeTooLarge)
	h.call(t, writer, "POST", "/api/v1/users", `{"user":"u","avatar":"`+strings.Repeat("n", 2049)+`"}`).want(t, 413, posthorn.CodeTooLarge)
}

func TestTokensAndDevices(t *testing.T) {
	h := open(t)
	a := h.call(t, admin, "POST", "/api/v1/tokens", `{"user":"anna","device":"phone","install":0,"ttl_s":60}`).ok(t)
	if a.raw != `{"token":"pht_made","user":"anna","device":"phone","expires_at":1767000000000}` {
		t.Errorf("answered %s", a.raw)
	}
	if r := h.tokens[0]; r.TTL != time.Minute || r.Install == nil || *r.Install != 0 {
		t.Errorf("asked for %+v", r)
	}
	h.call(t, admin, "POST", "/api/v1/tokens", `{"user":"anna"}`).ok(t)
	if r := h.tokens[1]; r.TTL != 0 || r.Install != nil || r.Device != "" {
		t.Errorf("asked for %+v", r)
	}
	for _, body := range []string{`{"user":"anna","ttl_s":0}`, `{"user":"anna","ttl_s":9007199254740991}`, `{"user":"anna","device":""}`, `{}`} {
		h.call(t, admin, "POST", "/api/v1/tokens", body).want(t, 400, posthorn.CodeBadFrame)
	}
	if a := h.call(t, admin, "DELETE", "/api/v1/devices/anna/my%2Fphone", ""); a.status != 204 || a.raw != "" || !slices.Equal(h.revoked, []string{"anna/my/phone"}) {
		t.Errorf("%d %q %v", a.status, a.raw, h.revoked)
	}
	h.call(t, admin, "DELETE", "/api/v1/devices/ghost/phone", "").want(t, 404, posthorn.CodeNotFound)
}

func TestKeys(t *testing.T) {
	h := open(t)
	a := h.call(t, admin, "POST", "/api/v1/keys", `{"name":"backend","scopes":["read","write"]}`).ok(t)
	if a.raw != `{"id":"1","name":"backend","scopes":["read","write"],"key":"phk_made"}` {
		t.Errorf("answered %s", a.raw)
	}
	if a := h.call(t, admin, "DELETE", "/api/v1/keys/1", ""); a.status != 204 {
		t.Errorf("revoke: %d", a.status)
	}
	a = h.call(t, admin, "GET", "/api/v1/keys", "").ok(t)
	if a.raw != `{"keys":[{"id":"1","name":"backend","scopes":["read","write"],"revoked":true}]}` {
		t.Errorf("listed %s", a.raw)
	}
	h.call(t, admin, "DELETE", "/api/v1/keys/2", "").want(t, 404, posthorn.CodeNotFound)
	h.call(t, admin, "POST", "/api/v1/keys", `{"name":"backend"}`).want(t, 400, posthorn.CodeBadFrame)
	h.call(t, admin, "POST", "/api/v1/keys", `{"scopes":["read"]}`).want(t, 400, posthorn.CodeBadFrame)
}

func TestOpenConversation(t *testing.T) {
	h := open(t)
	a := h.call(t, anna, "POST", "/api/v1/conversations", `{"kind":"group","members":["ben","ben","carla"],"title":"Trip"}`, "Idempotency-Key", "k1").ok(t)
	if a.raw != `{"conv":"c-k1","head":1,"dup":false,"cmid":"k1"}` {
		t.Errorf("answered %s", a.raw)
	}
	want := posthorn.Open{Creator: "anna", Cmid: "k1", Kind: posthorn.Group, Title: "Trip", Members: []string{"ben", "carla"}, History: "joined"}
	if !reflect.DeepEqual(h.opens[0], want) {
		t.Errorf("asked for %+v", h.opens[0])
	}
	if a = h.call(t, anna, "POST", "/api/v1/conversations", `{"kind":"group"}`, "Idempotency-Key", "k1").ok(t); a.body["dup"] != true {
		t.Errorf("repeated: %s", a.raw)
	}
	h.call(t, admin, "POST", "/api/v1/conversations", `{"kind":"channel","conv":"news","history":"all"}`).ok(t)
	if o := h.opens[2]; o.Creator != "" || !o.AsServer || o.Conv != "news" || o.History != "all" || !uuid7.MatchString(o.Cmid) {
		t.Errorf("asked for %+v", o)
	}
	h.call(t, anna, "POST", "/api/v1/conversations", `{"kind":"group","conv":"mine"}`).want(t, 403, posthorn.CodeForbidden)
	var many []string
	for i := range 501 {
		many = append(many, fmt.Sprint("u", i))
	}
	list, _ := json.Marshal(many)
	h.call(t, admin, "POST", "/api/v1/conversations", `{"kind":"group","members":`+string(list)+`}`).want(t, 413, posthorn.CodeTooLarge)
	h.call(t, admin, "POST", "/api/v1/conversations", `{"kind":"group","title":"`+strings.Repeat("t", 513)+`"}`).want(t, 413, posthorn.CodeTooLarge)
	for _, body := range []string{`{}`, `{"kind":"room"}`, `{"kind":"group","history":"none"}`, `{"kind":"group","conv":""}`, `{"kind":"group","members":[""]}`, `{"kind":"group","members":"ben"}`, `{"kind":"group","members":[null]}`} {
		h.call(t, admin, "POST", "/api/v1/conversations", body).want(t, 400, posthorn.CodeBadFrame)
	}
}

var uuid7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestConversation(t *testing.T) {
	h := open(t)
	a := h.call(t, anna, "GET", "/api/v1/conversations/c1", "").ok(t)
	if a.str("conv") != "c1" || a.num("head") != 1 || a.body["t"] != nil {
		t.Errorf("shown %s", a.raw)
	}
	h.call(t, readKey, "GET", "/api/v1/conversations/c1", "").ok(t)
	if got := h.views; !slices.Equal(got, []posthorn.Viewer{{User: "anna"}, {Server: true}}) {
		t.Errorf("seen by %+v", got)
	}
	a = h.call(t, anna, "PATCH", "/api/v1/conversations/c1", `{"title":""}`, "Idempotency-Key", "k").ok(t)
	if op := h.lastOp(); op.Kind != posthorn.KindMeta || op.Title != "" || op.Sender != "anna" || op.AsServer || op.DeviceID != 0 || a.num("seq") != 2 {
		t.Errorf("%+v: %s", op, a.raw)
	}
	h.call(t, writer, "PATCH", "/api/v1/conversations/c1", `{"title":"T"}`).ok(t)
	if op := h.lastOp(); op.Title != "T" || op.Sender != "" || !op.AsServer || op.Submitted.IsZero() {
		t.Errorf("%+v", op)
	}
	h.call(t, writer, "PATCH", "/api/v1/conversations/c1", `{}`).want(t, 400, posthorn.CodeBadFrame)
	h.call(t, writer, "PATCH", "/api/v1/conversations/c1", `{"title":"`+strings.Repeat("t", 513)+`"}`).want(t, 413, posthorn.CodeTooLarge)
}

func TestListConversations(t *testing.T) {
	h := open(t)
	a := h.call(t, anna, "GET", "/api/v1/users/anna/conversations?after=c0&limit=7&since=s0", "").ok(t)
	if !strings.HasPrefix(a.raw, `{"convs":[{"conv":"c1",`) || !strings.Contains(a.raw, `"data":{"a": 1.50}`) || a.str("next") != "c1" || a.str("since") != "s1" {
		t.Errorf("listed %s", a.raw)
	}
	h.call(t, readKey, "GET", "/api/v1/users/ben/conversations", "").ok(t)
	if !slices.Equal(h.lists, []posthorn.ListQuery{{After: "c0", Limit: 7, Since: "s0"}, {Limit: 100}}) || !slices.Equal(h.views, []posthorn.Viewer{{User: "anna"}, {User: "ben"}}) {
		t.Errorf("asked %+v for %+v", h.lists, h.views)
	}
	h.call(t, anna, "GET", "/api/v1/users/ben/conversations", "").want(t, 403, posthorn.CodeForbidden)
	h.call(t, anna, "GET", "/api/v1/users/anna/conversations?since="+strings.Repeat("s", 513), "").want(t, 400, posthorn.CodeBadFrame)
}

func TestMembers(t *testing.T) {
	h := open(t)
	a := h.call(t, anna, "POST", "/api/v1/conversations/c1/members", `{"users":["dora","emil","dora"]}`, "Idempotency-Key", "k").ok(t)
	if op := h.lastOp(); op.Kind != posthorn.KindJoin || !slices.Equal(op.Users, []string{"dora", "emil"}) || op.Role != posthorn.RoleMember || op.Sender != "anna" || a.num("seq") != 2 {
		t.Errorf("%+v: %s", op, a.raw)
	}
	h.call(t, writer, "POST", "/api/v1/conversations/c1/members", `{"users":["fritz"],"role":"admin"}`).ok(t)
	if op := h.lastOp(); op.Role != posthorn.RoleAdmin || !op.AsServer || op.Sender != "" {
		t.Errorf("%+v", op)
	}
	h.call(t, anna, "POST", "/api/v1/conversations/c1/members", `{"users":["fritz"],"role":"admin"}`).want(t, 403, posthorn.CodeForbidden)
	for _, body := range []string{`{}`, `{"users":[]}`, `{"users":["g"],"role":"owner"}`, `{"users":["g"],"role":""}`, `{"users":[7]}`} {
		h.call(t, writer, "POST", "/api/v1/conversations/c1/members", body).want(t, 400, posthorn.CodeBadFrame)
	}
	a = h.call(t, ben, "GET", "/api/v1/conversations/c1/members?limit=1000000000", "").ok(t)
	if !strings.HasPrefix(a.raw, `{"conv":"c1","members":[{"user":"anna","name":"ANNA","role":"member","since":1},`) || h.limits[0] != 500 {
		t.Errorf("listed %s by %v", a.raw, h.limits)
	}
	h.call(t, ben, "DELETE", "/api/v1/conversations/c1/members/ben", "", "Idempotency-Key", "bye").ok(t)
	if op := h.lastOp(); op.Kind != posthorn.KindLeave || op.Sender != "ben" || !slices.Equal(op.Users, []string{"ben"}) {
		t.Errorf("%+v", op)
	}
	h.call(t, ben, "GET", "/api/v1/conversations/c1/members", "").want(t, 404, posthorn.CodeNotMember)
	h.call(t, writer, "DELETE", "/api/v1/conversations/c1/members/anna", "").ok(t)
	if op := h.lastOp(); op.Sender != "" || !op.AsServer || !slices.Equal(op.Users, []string{"anna"}) {
		t.Errorf("%+v", op)
	}
}

func TestSend(t *testing.T) {
	h := open(t)
	a := h.call(t, anna, "POST", "/api/v1/conversations/c1/events", `{"body":"hé <b> & 'x'","reply_to":1}`, "Idempotency-Key", "k1").ok(t)
	if a.raw != `{"conv":"c1","seq":2,"mid":"c1-m2","dup":false,"cmid":"k1","epoch":1,"at":1767000000002}` {
		t.Errorf("answered %s", a.raw)
	}
	if op := h.lastOp(); op.Kind != posthorn.KindMsg || op.Sender != "anna" || op.AsServer || *op.Body != "hé <b> & 'x'" || op.ReplyTo != 1 || op.Data != nil {
		t.Errorf("%+v", op)
	}
	if a = h.call(t, anna, "POST", "/api/v1/conversations/c1/events", `{"body":"hé <b> & 'x'","reply_to":1}`, "Idempotency-Key", "k1").ok(t); a.body["dup"] != true || a.num("seq") != 2 {
		t.Errorf("repeated: %s", a.raw)
	}
	h.call(t, anna, "POST", "/api/v1/conversations/c1/events", `{"body":"two"}`, "Idempotency-Key", "k1").want(t, 409, posthorn.CodeCmidReused)

	// data stays the bytes that came, in the op and in the page.
	data := "{ \"n\": 1.50, \"big\": 9007199254740993, \"e\": 1E3, \"z\": -0,\n\t\"u\": \"\\u00e9\\/<\" , \"a\":[1 ,2] }"
	h.call(t, writer, "POST", "/api/v1/conversations/c1/events", `{"sender":"ben","data":`+data+`}`).ok(t)
	if op := h.lastOp(); string(op.Data) != data || op.Body != nil || op.Sender != "ben" || !op.AsServer || !uuid7.MatchString(op.Cmid) {
		t.Errorf("%s %+v", op.Data, op)
	}
	if a = h.call(t, anna, "GET", "/api/v1/conversations/c1/events?after=2", "").ok(t); !strings.Contains(a.raw, `"data":`+data+`,`) {
		t.Errorf("read back %s", a.raw)
	}
	// A server key may speak for nobody; a device token for its own user only.
	h.call(t, writer, "POST", "/api/v1/conversations/c1/events", `{"body":"system"}`).ok(t)
	if op := h.lastOp(); op.Sender != "" || !op.AsServer {
		t.Errorf("%+v", op)
	}
	h.call(t, anna, "POST", "/api/v1/conversations/c1/events", `{"sender":"anna","body":""}`).ok(t)
	h.call(t, anna, "POST", "/api/v1/conversations/c1/events", `{"sender":"ben","body":"x"}`).want(t, 403, posthorn.CodeForbidden)
	h.call(t, writer, "POST", "/api/v1/conversations/c1/events", `{"sender":"carla","body":"x"}`).want(t, 404, posthorn.CodeNotMember)
	for _, body := range []string{`{}`, `{"sender":"","body":"x"}`, `{"data":[1]}`, `{"data":"{}"}`, `{"data":null,"body":"x"}`, `{"body":7}`, `{"body":{}}`, `{"Body":"x"}`, `{"reply_to":1}`} {
		h.call(t, writer, "POST", "/api/v1/conversations/c1/events", body).want(t, 400, posthorn.CodeBadFrame)
	}
	half := strings.Repeat("x", 32<<10)
	h.call(t, writer, "POST", "/api/v1/conversations/c1/events", `{"body":"`+half+`","data":{"x":"`+half[8:]+`"}}`).ok(t)
	h.call(t, writer, "POST", "/api/v1/conversations/c1/events", `{"body":"`+half+`","data":{"x":"`+half[7:]+`"}}`).want(t, 413, posthorn.CodeTooLarge)
	h.call(t, writer, "POST", "/api/v1/conversations/c1/events", `{"body":"`+strings.Repeat("x", 256<<10)+`"}`).want(t, 413, posthorn.CodeTooLarge)
}

func TestPage(t *testing.T) {
	h := open(t)
	for i := range 3 {
		h.call(t, anna, "POST", "/api/v1/conversations/c1/events", fmt.Sprintf(`{"body":"m%d"}`, i)).ok(t)
	}
	a := h.call(t, anna, "GET", "/api/v1/conversations/c1/events?after=3&limit=2", "").ok(t)
	if !strings.HasPrefix(a.raw, `{"conv":"c1","events":[{"conv":"c1","seq":4,"kind":"msg",`) || a.num("upto") != 4 || a.num("head") != 4 || !strings.Contains(a.raw, `"skip":[[8,9]]`) || !strings.Contains(a.raw, `"via":"server"`) {
		t.Errorf("page %s", a.raw)
	}
	h.call(t, readKey, "GET", "/api/v1/conversations/c1/events?before=4&limit=501", "").ok(t)
	h.call(t, ben, "GET", "/api/v1/conversations/c1/events", "").ok(t)
	if want := []posthorn.PageQuery{{Conv: "c1", After: 3, Limit: 2}, {Conv: "c1", Before: 4, History: true, Limit: 500}, {Conv: "c1", Limit: 100}}; !slices.Equal(h.pages, want) {
		t.Errorf("asked %+v", h.pages)
	}
	// Neither tail nor device: no start mark, no cursor.
	if want := []posthorn.Viewer{{User: "anna"}, {Server: true}, {User: "ben"}}; !slices.Equal(h.views, want) {
		t.Errorf("for %+v", h.views)
	}
	h.call(t, anna, "GET", "/api/v1/conversations/c1/events?after=5", "").want(t, 409, posthorn.CodeCursorAhead)
	h.call(t, anna, "GET", "/api/v1/conversations/c1/events?after=1&before=2", "").want(t, 400, posthorn.CodeBadFrame)
	// Not there and not theirs look alike.
	absent, other := h.call(t, carla, "GET", "/api/v1/conversations/nothing/events", ""), h.call(t, carla, "GET", "/api/v1/conversations/c1/events", "")
	if absent.want(t, 404, posthorn.CodeNotMember); absent.raw != other.raw {
		t.Errorf("%s differs from %s", absent.raw, other.raw)
	}
}

func TestHead(t *testing.T) {
	h := open(t)
	if a := h.call(t, anna, http.MethodHead, "/api/v1/conversations/c1", ""); a.status != 200 {
		t.Errorf("HEAD: %d", a.status)
	}
}
