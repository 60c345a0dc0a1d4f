package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

func TestOpenAPI(t *testing.T) {
	h := open(t, func(c *Config) { c.Dev, c.Version = true, "1.2.3" })
	a := h.call(t, nobody, "GET", "/api/v1/openapi.json", "").ok(t)
	info, _ := a.body["info"].(map[string]any)
	if a.header.Get("Content-Type") != "application/openapi+json" || a.str("openapi") != "3.1.0" || info["version"] != "1.2.3" {
		t.Errorf("%s: %.200s", a.header.Get("Content-Type"), a.raw)
	}
	var doc struct {
		Servers []struct{ URL string }
		Paths   map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.raw), &doc); err != nil || len(doc.Servers) != 1 || doc.Servers[0].URL != "/api/v1" {
		t.Fatalf("%v %+v", err, doc.Servers)
	}
	want := map[string][]string{
		"/users": {"get", "post"}, "/tokens": {"post"}, "/devices/{user}/{device}": {"delete"}, "/keys": {"get", "post"}, "/keys/{key}": {"delete"},
		"/conversations": {"post"}, "/conversations/{conv}": {"get", "patch"}, "/users/{user}/conversations": {"get"},
		"/conversations/{conv}/members": {"get", "post"}, "/conversations/{conv}/members/{user}": {"delete"}, "/conversations/{conv}/events": {"get", "post"},
		"/dev/token": {"post"}, "/healthz": {"get", "servers"}, "/readyz": {"get", "servers"},
	}
	if got, all := slices.Sorted(maps.Keys(doc.Paths)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, all) {
		t.Errorf("paths %v, want %v", got, all)
	}
	for path, item := range doc.Paths {
		if got := slices.Sorted(maps.Keys(item)); !slices.Equal(got, want[path]) {
			t.Errorf("%s: %v, want %v", path, got, want[path])
		}
		for method, raw := range item {
			if method != "servers" {
				checkOperation(t, method+" "+path, raw)
			}
		}
	}
	checkRefs(t, a.body, a.body)
	schemas, _ := a.body["components"].(map[string]any)["schemas"].(map[string]any)
	for name, s := range schemas {
		if strings.ContainsAny(name, "[]./ ") {
			t.Errorf("schema name %q", name)
		}
		for field, f := range s.(map[string]any)["properties"].(map[string]any) {
			if types, ok := f.(map[string]any)["type"].([]any); ok {
				t.Errorf("%s.%s may be %v: null is in no answer and refused in a body", name, field, types)
			}
		}
	}
	req, _ := schemas["SendBody"].(map[string]any)
	data, _ := req["properties"].(map[string]any)["data"].(map[string]any)
	reply, _ := req["properties"].(map[string]any)["reply_to"].(map[string]any)
	if data["type"] != "object" || reply["type"] != "integer" || reply["maximum"] != float64(posthorn.MaxSeq) || req["required"] != nil || req["additionalProperties"] != true {
		t.Errorf("SendBody is %v", req)
	}
	if e, _ := schemas["Entry"].(map[string]any); e == nil {
		t.Error("no schema Entry")
	}
}

func checkOperation(t *testing.T, name string, raw json.RawMessage) {
	t.Helper()
	var op struct {
		OperationID, Summary string
		Security             []map[string][]string
		Parameters           []struct {
			Name, In string
			Required bool
			Schema   map[string]any
		}
		RequestBody *struct{ Required bool }
		Responses   map[string]struct{ Content map[string]any }
	}
	if err := json.Unmarshal(raw, &op); err != nil {
		t.Fatal(err)
	}
	open := strings.Contains(name, "z") || strings.Contains(name, "/dev/")
	if op.OperationID == "" || op.Summary == "" || (len(op.Security) == 1) == open {
		t.Errorf("%s: %+v", name, op)
	}
	if _, ok := op.Responses["default"].Content[problemType]; !ok {
		t.Errorf("%s: problems are not described", name)
	}
	for _, p := range op.Parameters {
		if p.Required != (p.In == "path") || p.Schema["type"] == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	described := map[string]bool{}
	for _, p := range op.Parameters {
		described[p.In+" "+p.Name] = true
	}
	for part := range strings.SplitSeq(name, "{") {
		if param, _, ok := strings.Cut(part, "}"); ok && !described["path "+param] {
			t.Errorf("%s: %s is not described", name, param)
		}
	}
	if writes := strings.HasPrefix(name, "post") || strings.HasPrefix(name, "patch"); writes != (op.RequestBody != nil && op.RequestBody.Required) {
		t.Errorf("%s: body %+v", name, op.RequestBody)
	}
}

// checkRefs follows every $ref of the document.
func checkRefs(t *testing.T, doc map[string]any, node any) {
	t.Helper()
	switch n := node.(type) {
	case map[string]any:
		if ref, ok := n["$ref"].(string); ok {
			var at any = doc
			for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				m, _ := at.(map[string]any)
				at = m[part]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, v := range n {
			checkRefs(t, doc, v)
		}
	case []any:
		for _, v := range n {
			checkRefs(t, doc, v)
		}
	}
}

// TestShapes: the document describes exactly what wire writes.
func TestShapes(t *testing.T) {
	body := "b"
	full := posthorn.Event{Conv: "c", Seq: 1, Kind: posthorn.KindMsg, Mid: "m", Sender: "s", ViaServer: true, Cmid: "k", Body: &body, Data: []byte("{}"), ReplyTo: 1, Target: 1, At: time.Now()}
	recalled := wire.AppendEventBody(nil, &posthorn.Event{Recalled: true})
	if !strings.Contains(string(recalled), `"recalled":true`) {
		t.Errorf("%s", recalled)
	}
	e := posthorn.Entry{Title: "t", Role: posthorn.RoleOwner, Last: &full, LastAt: time.Now()}
	for _, c := range []struct {
		shape       any
		full, empty []byte
	}{
		{event{}, wire.AppendEventBody(nil, &full), wire.AppendEventBody(nil, &posthorn.Event{})},
		{entry{}, wire.AppendEntry(nil, &e), wire.AppendEntry(nil, &posthorn.Entry{})},
		{page{}, wire.AppendPageBody(nil, &posthorn.Page{}), wire.AppendPageBody(nil, &posthorn.Page{})},
		{list{}, wire.AppendListBody(nil, &posthorn.List{Next: "n", Since: "s"}), wire.AppendListBody(nil, &posthorn.List{})},
	} {
		var all, required []string
		for f := range reflect.TypeOf(c.shape).Fields() {
			name, opt, _ := strings.Cut(f.Tag.Get("json"), ",")
			all = append(all, name)
			if opt == "" {
				required = append(required, name)
			}
		}
		keys := func(b []byte) []string {
			var m map[string]json.RawMessage
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			return slices.Sorted(maps.Keys(m))
		}
		slices.Sort(required)
		slices.Sort(all)
		if _, ok := c.shape.(event); ok { // an event with content is not recalled
			all = slices.DeleteFunc(all, func(k string) bool { return k == "recalled" })
		}
		if got := keys(c.full); !slices.Equal(got, all) {
			t.Errorf("%T: written %v, described %v", c.shape, got, all)
		}
		if got := keys(c.empty); !slices.Equal(got, required) {
			t.Errorf("%T: written always %v, described as required %v", c.shape, got, required)
		}
	}
}
