package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/posthorn/posthorn"
)

// FuzzDecode holds the strict decoder to its promises on any input, and compares it with two oracles that share no code
// with its walk: jsontext's token stream says what must be refused, encoding/json says what the fields hold.
func FuzzDecode(f *testing.F) {
	seed(f, "client-valid.json", "client-invalid.json")
	lim := posthorn.DefaultLimits()
	f.Fuzz(func(t *testing.T, in []byte) {
		kept := bytes.Clone(in)
		fr, err := Decode(in, lim)
		if !bytes.Equal(in, kept) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			var fe *FrameError
			if fr != nil || !errors.As(err, &fe) || fe.Err == nil {
				t.Fatalf("%+v, %v", fr, err)
			}
			if len(fe.RID) > lim.CmidBytes || !keepable(fe.RID) || !keepable(fe.Err.Msg) || len(fe.Err.Msg) > 200 {
				t.Fatalf("an answer could not be made of %+v", fe)
			}
			return
		}
		if why := lawful(in, lim); why != "" {
			t.Fatalf("accepted %q: %s", in, why)
		}
		agree(t, in, fr)
		clear(in)
		eachString(t, reflect.ValueOf(fr))
		out := Append(nil, fr)
		again, err := Decode(out, lim)
		if err != nil || !reflect.DeepEqual(fr, again) {
			t.Fatalf("%q\nas %q\nbecame %+v, %v", kept, out, again, err)
		}
	})
}

// FuzzDecodeServer holds the tolerant decoder to its promises.
func FuzzDecodeServer(f *testing.F) {
	seed(f, "server-valid.json", "server-invalid.json")
	f.Fuzz(func(t *testing.T, in []byte) {
		kept := bytes.Clone(in)
		fr, err := DecodeServer(in)
		if !bytes.Equal(in, kept) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			var fe *FrameError
			if fr != nil || !errors.As(err, &fe) || fe.Err == nil {
				t.Fatalf("%+v, %v", fr, err)
			}
			return
		}
		if !json.Valid(in) {
			t.Fatalf("accepted %q", in)
		}
		if ev, ok := fr.(*Event); ok && !bytes.Contains(in, ev.Ev.Data) {
			t.Fatalf("data %q is not in %q", ev.Ev.Data, in)
		}
		clear(in)
		eachString(t, reflect.ValueOf(fr))
		out := Append(nil, fr)
		again, err := DecodeServer(out)
		if err != nil || !reflect.DeepEqual(fr, again) {
			t.Fatalf("%q\nas %q\nbecame %+v, %v", kept, out, again, err)
		}
	})
}

func seed(f *testing.F, names ...string) {
	for _, name := range names {
		for _, e := range corpus(f, name) {
			if b := e.bytes(f); len(b) < 2000 {
				f.Add(b)
			}
		}
	}
}

func keepable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// eachString checks every text and data of a frame.
func eachString(t *testing.T, v reflect.Value) {
	if b, ok := v.Interface().([]byte); ok {
		if b != nil && !jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			t.Fatalf("data is no JSON: %q", b)
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		if !keepable(v.String()) {
			t.Fatalf("kept %q", v.String())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachString(t, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachString(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachString(t, v.Field(i))
			}
		}
	}
}

// lawful reads the frame token by token and says why it had to be refused.
func lawful(in []byte, lim posthorn.Limits) string {
	if len(in) > lim.FrameIn || !json.Valid(in) {
		return "too large, or no JSON"
	}
	d := jsontext.NewDecoder(bytes.NewReader(in))
	for first := true; ; first = false {
		tok, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			return err.Error()
		case first && tok.Kind() != jsontext.KindBeginObject:
			return "not an object"
		case d.StackDepth() > lim.Depth:
			return "too deep"
		case tok.Kind() == jsontext.KindString && strings.ContainsRune(tok.String(), 0):
			return "U+0000"
		}
	}
}

// agree compares what was decoded with what encoding/json finds under the same names.
func agree(t *testing.T, in []byte, fr Frame) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(in, &raw); err != nil {
		t.Fatal(err)
	}
	for name, got := range describe(fr) {
		if g, ok := got.(given); ok {
			got = g.v
		}
		val, there := raw[name]
		switch {
		case name == "user" && fr.Type() == "typing": // the server's word, not the client's
		case name == "limit" || name == "users" || name == "members" || name == "pairs" || name == "history":
		case name == "data":
			if got != string(val) || !bytes.Contains(in, []byte(got.(string))) {
				t.Fatalf("data %q of %q", got, in)
			}
		case !there:
			if got != nil && got != "" && got != json.Number("0") {
				t.Fatalf("%s is %v in %q", name, got, in)
			}
		default:
			var want any
			dec := json.NewDecoder(bytes.NewReader(val))
			dec.UseNumber()
			if err := dec.Decode(&want); err != nil || want != got {
				t.Fatalf("%s is %v in %q", name, got, in)
			}
		}
	}
}
