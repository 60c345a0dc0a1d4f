package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/posthorn/posthorn"
)

// describe turns a decoded frame into the names of protocol.md by reflection, so that the corpus judges the decoders
// without help from the encoder. Numbers become json.Number, data becomes its text, an absent optional becomes nil.
func describe(f Frame) map[string]any {
	m := describeStruct(reflect.ValueOf(f).Elem())
	m["t"] = f.Type()
	return m
}

func describeStruct(v reflect.Value) map[string]any {
	m := map[string]any{}
	for i := range v.NumField() {
		name, x := v.Type().Field(i).Name, v.Field(i)
		switch {
		case name == "T" || name == "MsgNo":
		case name == "ViaServer":
			m["via"] = map[bool]string{true: "server"}[x.Bool()]
		case name == "Page":
			for k, y := range describeStruct(x) {
				m[k] = y
			}
		default:
			m[snake(name)] = describeValue(x)
		}
	}
	return m
}

// given marks an optional that is there, so that a given 0 or "" differs from an absent one.
type given struct{ v any }

func describeValue(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Time:
		if x.IsZero() {
			return json.Number("0")
		}
		return json.Number(fmt.Sprint(x.UnixMilli()))
	case []byte:
		return string(x)
	case posthorn.Pair:
		return []any{json.Number(fmt.Sprint(x.Seq)), x.Mid}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return given{describeValue(v.Elem())}
	case reflect.Struct:
		return describeStruct(v)
	case reflect.Slice, reflect.Array:
		list := []any{}
		for i := range v.Len() {
			list = append(list, describeValue(v.Index(i)))
		}
		return list
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return v.String()
	default:
		return json.Number(fmt.Sprint(v.Int()))
	}
}

func snake(name string) string {
	name = strings.NewReplacer("RID", "rid", "RV", "rv", "HeartbeatMS", "heartbeat_ms", "RetryMS", "retry_ms", "ReconnectMS", "reconnect_ms").Replace(name)
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// differ compares what a corpus wants with what was decoded; "" is agreement. What want does not name has no value.
func differ(path string, want, got any) string {
	if g, ok := got.(given); ok {
		if want == nil {
			return fmt.Sprintf("%s: want absent, got %v", path, g.v)
		}
		got = g.v
	}
	switch w := want.(type) {
	case nil:
		if got != nil && got != "" && got != false && got != json.Number("0") && !emptyList(got) {
			return fmt.Sprintf("%s: want nothing, got %v", path, got)
		}
		return ""
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: got %v", path, got)
		}
		for k := range w {
			if _, ok := g[k]; !ok {
				return fmt.Sprintf("%s.%s is not decoded at all", path, k)
			}
		}
		for k, x := range g {
			if d := differ(path+"."+k, w[k], x); d != "" {
				return d
			}
		}
		return ""
	case []any:
		if s, ok := repeated(w); ok {
			return differ(path, s, got)
		}
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: want %v, got %v", path, w, got)
		}
		for i := range w {
			if d := differ(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); d != "" {
				return d
			}
		}
		return ""
	}
	if want != got {
		return fmt.Sprintf("%s: want %.60v, got %.60v", path, want, got)
	}
	return ""
}

func emptyList(v any) bool {
	l, ok := v.([]any)
	return ok && len(l) == 0
}
