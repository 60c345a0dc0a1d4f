package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

const events = "/api/v1/conversations/c1/events"

// TestB01_NulOverHTTP: U+0000 in every string that a call takes is one terminal error, decided before any port is asked;
// it takes no number.
func TestB01_NulOverHTTP(t *testing.T) {
	const nul = `a\u0000b`
	bodies := map[string][]string{
		"POST /users":                          {"user", "name", "avatar"},
		"POST /tokens":                         {"user", "device"},
		"POST /keys":                           {"name"},
		"POST /conversations":                  {"kind", "title", "history", "conv"},
		"PATCH /conversations/c1":              {"title"},
		"POST /conversations/c1/members":       {"role"},
		"POST /conversations/c1/events":        {"sender", "body"},
		"POST /dev/token":                      {"user", "device"},
		"POST /conversations/c1/events ignore": {"somethingElse"},
	}
	cases := map[string][3]string{}
	add := func(what, body string) {
		method, path, _ := strings.Cut(strings.TrimSuffix(what, " ignore"), " ")
		cases[what+" "+body] = [3]string{method, "/api/v1" + path, body}
	}
	for what, fields := range bodies {
		for _, f := range fields {
			add(what, `{"`+f+`":"`+nul+`"}`)
		}
	}
	add("POST /conversations", `{"kind":"group","members":["`+nul+`"]}`)
	add("POST /conversations/c1/members", `{"users":["`+nul+`"]}`)
	add("POST /keys", `{"name":"k","scopes":["`+nul+`"]}`)
	for _, data := range []string{`{"x":"` + nul + `"}`, `{"` + nul + `":1}`, `{"x":[[{"y":["` + nul + `"]}]]}`} {
		add("POST /conversations/c1/events", `{"data":`+data+`}`)
	}
	for name, path := range map[string]string{
		"POST conv": "/conversations/a%00b/events", "GET conv": "/conversations/a%00b", "PATCH conv": "/conversations/a%00b", "GET user": "/users/a%00b/conversations",
		"DELETE user": "/devices/a%00b/phone", "DELETE device": "/devices/anna/a%00b", "DELETE key": "/keys/a%00b", "DELETE member": "/conversations/c1/members/a%00b",
		"GET after": "/users?after=a%00b", "GET since": "/users/anna/conversations?since=a%00b", "GET members": "/conversations/c1/members?after=a%00b",
		"GET seq": "/conversations/c1/events?after=1%00",
	} {
		method, _, _ := strings.Cut(name, " ")
		body := map[string]string{"POST": `{"body":"x"}`, "PATCH": `{"title":"x"}`}[method]
		cases["path "+name] = [3]string{method, "/api/v1" + path, body}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := open(t, func(cfg *Config) { cfg.Dev = true })
			r := h.request(admin, c[0], c[1], c[2])
			r.Host = "localhost"
			a := h.serve(t, r)
			a.want(t, 400, posthorn.CodeBadFrame)
			if len(h.ops)+len(h.opens)+len(h.users)+len(h.tokens)+len(h.keys)+len(h.views)+len(h.revoked)+len(h.limits) != 0 {
				t.Error("a port was asked all the same")
			}
			if strings.Contains(a.raw, `\u0000`) {
				t.Errorf("quoted back: %s", a.raw)
			}
			if a := h.call(t, anna, "POST", events, `{"body":"next"}`).ok(t); a.num("seq") != 2 {
				t.Errorf("the next good send got %s", a.raw)
			}
		})
	}
	t.Run("Idempotency-Key", func(t *testing.T) {
		h := open(t)
		h.call(t, anna, "POST", events, `{"body":"x"}`, "Idempotency-Key", "a\x00b").want(t, 400, posthorn.CodeBadFrame)
	})
}

// TestB04_KeyOverHTTP: the Idempotency-Key is the cmid, byte for byte, in the scope of conversation and sender.
func TestB04_KeyOverHTTP(t *testing.T) {
	h := open(t)
	send := func(who, conv, key string) answer {
		t.Helper()
		return h.call(t, who, "POST", "/api/v1/conversations/"+conv+"/events", `{"body":"x"}`, "Idempotency-Key", key).ok(t)
	}
	fresh := func(name string, a answer, seq int64) {
		t.Helper()
		if a.body["dup"] != false || a.num("seq") != seq {
			t.Errorf("%s: %s", name, a.raw)
		}
	}
	fresh("first", send(anna, "c1", "A"), 2)
	fresh("another sender", send(ben, "c1", "A"), 3)
	fresh("another conversation", send(anna, "c2", "A"), 2)
	fresh("another case", send(anna, "c1", "a"), 4)
	fresh("a space within", send(anna, "c1", "A A"), 5)
	fresh("NFC", send(anna, "c1", "\u00e9"), 6)
	fresh("NFD", send(anna, "c1", "e\u0301"), 7)
	if op := h.lastOp(); op.Cmid != "e\u0301" {
		t.Errorf("the key was changed: %q", op.Cmid)
	}
	if a := send(anna, "c1", "A"); a.body["dup"] != true || a.num("seq") != 2 {
		t.Errorf("again: %s", a.raw)
	}
	fresh("64 bytes", send(anna, "c1", strings.Repeat("k", 64)), 8)
	// Without a key each request is one of its own, and the answer says which key it got.
	one, two := h.call(t, anna, "POST", events, `{"body":"x"}`).ok(t), h.call(t, anna, "POST", events, `{"body":"x"}`).ok(t)
	if one.str("cmid") == two.str("cmid") || !uuid7.MatchString(one.str("cmid")) || two.num("seq") != 10 {
		t.Errorf("%s, then %s", one.raw, two.raw)
	}
	if a := send(anna, "c1", two.str("cmid")); a.body["dup"] != true || a.num("seq") != 10 {
		t.Errorf("with the key that was told: %s", a.raw)
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", events, `{"body":"x"}`}, {"POST", "/api/v1/conversations", `{"kind":"group"}`}, {"PATCH", "/api/v1/conversations/c1", `{"title":"t"}`},
		{"POST", "/api/v1/conversations/c1/members", `{"users":["dora"]}`}, {"DELETE", "/api/v1/conversations/c1/members/anna", ""},
	} {
		for name, keys := range map[string][]string{
			"empty": {""}, "65 bytes": {strings.Repeat("k", 65)}, "a megabyte": {strings.Repeat("k", 1<<20)}, "not UTF-8": {"\xff"}, "twice": {"k", "k"},
		} {
			t.Run(c.method+" "+c.path+" "+name, func(t *testing.T) {
				headers := []string{}
				for _, k := range keys {
					headers = append(headers, "Idempotency-Key", k)
				}
				h.call(t, anna, c.method, c.path, c.body, headers...).want(t, 400, posthorn.CodeBadFrame)
			})
		}
	}
	if h.head("c1") != 10 {
		t.Errorf("head is %d", h.head("c1"))
	}
}

// TestB04_SpacesAroundTheKey: HTTP cuts them off before anybody sees them, so that "A " and "A" are one key here.
func TestB04_SpacesAroundTheKey(t *testing.T) {
	h := open(t)
	srv := httptest.NewServer(h.handler)
	defer srv.Close()
	for range 2 {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\nIdempotency-Key:   A  \r\nContent-Length: 12\r\n\r\n{\"body\":\"x\"}", events, anna)
		b, err := io.ReadAll(bufio.NewReader(conn))
		conn.Close()
		if err != nil || !strings.Contains(string(b), `"cmid":"A"`) {
			t.Fatalf("%v %s", err, b)
		}
	}
	if h.head("c1") != 2 {
		t.Errorf("head is %d", h.head("c1"))
	}
}

// TestB14_SeqsOverHTTP: what no honest client would send is one 400, never a 0, a wrap-around or a 500.
func TestB14_SeqsOverHTTP(t *testing.T) {
	h := open(t)
	bad := []string{"9007199254740992", "9223372036854775807", "9223372036854775808", "-1", "-0", "+1", "null", `"7"`, "7.0", "7e0", "1e3", "true", "0x7", "", "٧", "1_0"}
	for _, name := range []string{"after", "before"} {
		for _, v := range append(bad, "007", "1,2", "7 ", " 7") {
			t.Run(name+"="+v, func(t *testing.T) {
				h.call(t, anna, "GET", events+"?"+name+"="+escape(v), "").want(t, 400, posthorn.CodeBadFrame)
			})
		}
		h.call(t, anna, "GET", events+"?"+name+"=1&"+name+"=1", "").want(t, 400, posthorn.CodeBadFrame)
		h.call(t, anna, "GET", events+"?"+name+"=%zz", "").want(t, 400, posthorn.CodeBadFrame)
		h.call(t, anna, "GET", events+"?"+name+"=1;x=2", "").want(t, 400, posthorn.CodeBadFrame)
	}
	for _, f := range []struct{ path, body string }{
		{events, `{"body":"x","reply_to":%s}`}, {"/api/v1/tokens", `{"user":"anna","install":%s}`}, {"/api/v1/tokens", `{"user":"anna","ttl_s":%s}`},
	} {
		for _, v := range append(bad, "007", "{}", "[7]") {
			t.Run(fmt.Sprintf(f.body, v), func(t *testing.T) {
				h.call(t, admin, "POST", f.path, fmt.Sprintf(f.body, v)).want(t, 400, posthorn.CodeBadFrame)
			})
		}
	}
	h.call(t, anna, "POST", events, `{"body":"x","reply_to":0}`).want(t, 400, posthorn.CodeBadFrame)
	h.call(t, anna, "GET", events+"?before=0", "").want(t, 400, posthorn.CodeBadFrame)
	if len(h.ops)+len(h.pages)+len(h.tokens) != 0 {
		t.Errorf("asked %d ops, %d pages, %d tokens", len(h.ops), len(h.pages), len(h.tokens))
	}
	for _, list := range []string{events, "/api/v1/users", "/api/v1/keys", "/api/v1/users/anna/conversations", "/api/v1/conversations/c1/members"} {
		for _, v := range []string{"0", "-1", "-0", "", "1.0", "1e3", "ten", "01", "+1", " 1"} {
			t.Run(list+"?limit="+v, func(t *testing.T) {
				h.call(t, admin, "GET", list+"?limit="+escape(v), "").want(t, 400, posthorn.CodeBadFrame)
			})
		}
	}
	for v, want := range map[string]int{"1": 1, "500": 500, "501": 500, "1000000000": 500, strings.Repeat("9", 400): 500} {
		h.call(t, admin, "GET", events+"?limit="+v, "").ok(t)
		if got := h.pages[len(h.pages)-1].Limit; got != want {
			t.Errorf("limit=%.20s counts as %d", v, got)
		}
	}
	// At and past the head: the store judges, and it is no empty success.
	h.call(t, anna, "GET", events+"?after=1", "").ok(t)
	h.call(t, anna, "GET", events+"?after=2", "").want(t, 409, posthorn.CodeCursorAhead)
	h.call(t, anna, "GET", events+"?after=9007199254740991", "").want(t, 409, posthorn.CodeCursorAhead)
	h.call(t, anna, "GET", events+"?before=9007199254740991", "").ok(t)
}

func escape(s string) string {
	return strings.NewReplacer(" ", "%20", "+", "%2B", `"`, "%22").Replace(s)
}

// TestStrictBodies: a body is as strict as a frame.
func TestStrictBodies(t *testing.T) {
	h := open(t)
	deep := func(n int) string { return strings.Repeat(`{"x":`, n) + "1" + strings.Repeat("}", n) }
	for name, body := range map[string]string{
		"empty": " ", "no JSON": "hello", "cut off": `{"body":"x"`, "a list": `[{"body":"x"}]`, "a string": `"x"`, "null": "null", "two objects": `{"body":"x"}{"body":"y"}`,
		"something behind": `{"body":"x"} x`, "a trailing comma": `{"body":"x",}`, "single quotes": `{'body':'x'}`, "a comment": `{"body":"x"/**/}`, "NaN": `{"body":"x","data":{"n":NaN}}`,
		"a field twice": `{"body":"x","body":"x"}`, "twice by an escape": `{"body":"x","b\u006fdy":"x"}`, "twice in data": `{"data":{"a":{"b":1,"b":2}}}`, "an unknown field twice": `{"body":"x","z":1,"z":1}`,
		"a lone surrogate": `{"body":"\ud800"}`, "surrogates swapped": `{"body":"\udc00\ud800"}`, "a lone surrogate in data": `{"data":{"x":"\udfff"}}`, "a surrogate in a name": `{"data":{"\ud800":1}}`,
		"no UTF-8": "{\"body\":\"\xff\"}", "an overlong form": "{\"body\":\"\xc0\x80\"}", "UTF-8 of a surrogate": "{\"body\":\"\xed\xa0\x80\"}", "a raw NUL": "{\"body\":\"\x00\"}", "a BOM": "\ufeff{\"body\":\"x\"}",
		"null for a string": `{"body":null}`, "null for an object": `{"body":"x","data":null}`, "null for a number": `{"body":"x","reply_to":null}`, "too deep": `{"data":` + deep(64) + `}`,
	} {
		t.Run(name, func(t *testing.T) { h.call(t, anna, "POST", events, body).want(t, 400, posthorn.CodeBadFrame) })
	}
	h.call(t, anna, "POST", events, "").want(t, 400, posthorn.CodeBadFrame)
	if h.head("c1") != 1 || len(h.ops) != 0 {
		t.Errorf("head %d after %d ops", h.head("c1"), len(h.ops))
	}
	for name, body := range map[string]string{
		"unknown fields": `{"body":"x","Body":7,"BODY":null,"at":-1,"seq":1e9,"mid":[]}`, "spaces": " \n\t{ \"body\" : \"x\" }\r\n", "depth 64": `{"data":` + deep(63) + `}`,
		"a pair of surrogates": `{"body":"\ud83d\ude00"}`, "names that differ by case": `{"data":{"a":1,"A":2}}`, "an escaped name": `{"b\u006fdy":"x"}`,
	} {
		t.Run(name, func(t *testing.T) { h.call(t, anna, "POST", events, body).ok(t) })
	}
	// The refusal names the field and quotes nothing.
	a := h.call(t, admin, "POST", "/api/v1/conversations", `{"kind":"group","members":["a",{"secret":1}]}`)
	if a.want(t, 400, posthorn.CodeBadFrame); !strings.HasPrefix(a.str("detail"), "members.1 ") || strings.Contains(a.raw, "secret") {
		t.Errorf("%s", a.raw)
	}
	if a = h.call(t, anna, "POST", events, `{"body":"x","reply_to":1.5}`); !strings.HasPrefix(a.str("detail"), "reply_to must be an integer") {
		t.Errorf("%s", a.raw)
	}
}

func TestContentType(t *testing.T) {
	h := open(t)
	for ct, status := range map[string]int{"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON": 200, "text/plain": 415, "application/x-www-form-urlencoded": 415,
		"multipart/form-data; boundary=x": 415, "application/cbor": 415, "application/json5": 415, "": 415, ";": 415} {
		r := h.request(anna, "POST", events, `{"body":"x"}`)
		r.Header.Set("Content-Type", ct)
		if a := h.serve(t, r); a.status != status {
			t.Errorf("%q: %d %s", ct, a.status, a.raw)
		}
	}
	r := h.request(anna, "POST", events, `{"body":"x"}`)
	r.Header.Del("Content-Type")
	h.serve(t, r).ok(t)
}

// TestBodyLost: a body that does not arrive is worth a retry.
func TestBodyLost(t *testing.T) {
	h := open(t)
	r := h.request(anna, "POST", events, "x")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"body":`), errReader{}))
	h.serve(t, r).want(t, 503, posthorn.CodeUnavailable)
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestBodyDeadline, on a real connection: a body that does not come ends the call, and the deadline for it does not end
// one that waits for its commit afterwards.
func TestBodyDeadline(t *testing.T) {
	h := open(t, func(c *Config) {
		c.Limits = posthorn.DefaultLimits()
		c.Limits.LoginDeadline = 100 * time.Millisecond
	})
	srv := httptest.NewServer(h.handler)
	defer srv.Close()
	post := func(body string) string {
		t.Helper()
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Length: 12\r\n\r\n%s", events, anna, body)
		b, err := io.ReadAll(conn)
		if err != nil && len(b) == 0 {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := post(`{"body":`); !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.Contains(got, `"UNAVAILABLE"`) {
		t.Errorf("half a body: %s", got)
	}
	h.settle = func(op *posthorn.Op) { time.AfterFunc(400*time.Millisecond, func() { op.Done(h.write(op)) }) }
	if got := post(`{"body":"x"}`); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("a slow commit: %s", got)
	}
}
