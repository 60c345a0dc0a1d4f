package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/posthorn/posthorn"
)

// entry is one line of testdata/conformance; its README.md explains the fields.
type entry struct {
	Name  string         `json:"name"`
	Case  []string       `json:"case"`
	Frame *string        `json:"frame"`
	Hex   *string        `json:"hex"`
	Parts []any          `json:"parts"`
	Want  map[string]any `json:"want"`
	Exact bool           `json:"exact"`
	Code  posthorn.Code  `json:"code"`
	T     string         `json:"t"`
	RID   string         `json:"rid"`
}

func corpus(t testing.TB, name string) []entry {
	t.Helper()
	text, err := os.ReadFile("testdata/conformance/" + name)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	var list []entry
	if err := d.Decode(&list); err != nil {
		t.Fatal(name, err)
	}
	return list
}

func (e *entry) bytes(t testing.TB) []byte {
	t.Helper()
	switch {
	case e.Frame != nil:
		return []byte(*e.Frame)
	case e.Hex != nil:
		b, err := hex.DecodeString(*e.Hex)
		if err != nil {
			t.Fatal(e.Name, err)
		}
		return b
	}
	s, ok := repeated(e.Parts)
	if !ok {
		t.Fatal(e.Name, "has no frame")
	}
	return []byte(s)
}

// repeated joins [{"text":…,"times":…},…].
func repeated(parts []any) (string, bool) {
	var b strings.Builder
	for _, p := range parts {
		m, ok := p.(map[string]any)
		if !ok {
			return "", false
		}
		text, ok := m["text"].(string)
		if !ok {
			return "", false
		}
		n := int64(1)
		if times, ok := m["times"].(json.Number); ok {
			n, _ = times.Int64()
		}
		b.WriteString(strings.Repeat(text, int(n)))
	}
	return b.String(), b.Len() > 0
}

func TestConformanceClientValid(t *testing.T) {
	lim := posthorn.DefaultLimits()
	for _, e := range corpus(t, "client-valid.json") {
		t.Run(e.Name, func(t *testing.T) {
			in := e.bytes(t)
			f, err := Decode(in, lim)
			if err != nil {
				t.Fatal(err)
			}
			clear(in) // the frame must have kept nothing of it
			if d := differ(e.Want["t"].(string), e.Want, describe(f)); d != "" {
				t.Fatal(d)
			}
			again, err := Decode(Append(nil, f), lim)
			if err != nil || !reflect.DeepEqual(f, again) {
				t.Fatalf("encoded and decoded again: %+v, %v", again, err)
			}
		})
	}
}

func TestConformanceClientInvalid(t *testing.T) {
	for _, e := range corpus(t, "client-invalid.json") {
		t.Run(e.Name, func(t *testing.T) { refused(t, e.bytes(t), e.Code, e.T, e.RID) })
	}
}

func refused(t *testing.T, in []byte, code posthorn.Code, typ, rid string) {
	t.Helper()
	f, err := Decode(in, posthorn.DefaultLimits())
	if f != nil || err == nil {
		t.Fatalf("accepted: %+v", f)
	}
	var fe *FrameError
	if !errors.As(err, &fe) {
		t.Fatalf("%T", err)
	}
	if fe.Err.Code != code || fe.T != typ || fe.RID != rid {
		t.Fatalf("got %s t=%q rid=%q (%s), want %s t=%q rid=%q", fe.Err.Code, fe.T, fe.RID, fe.Err.Msg, code, typ, rid)
	}
	if posthorn.AsError(err) != fe.Err || code.Class() != posthorn.ItemTerminal {
		t.Fatal("a bad frame must be terminal for its item, whoever looks at the error")
	}
}

func TestConformanceServerValid(t *testing.T) {
	for _, e := range corpus(t, "server-valid.json") {
		t.Run(e.Name, func(t *testing.T) {
			in := e.bytes(t)
			f, err := DecodeServer(in)
			if err != nil {
				t.Fatal(err)
			}
			clear(in)
			if d := differ(e.Want["t"].(string), e.Want, describe(f)); d != "" {
				t.Fatal(d)
			}
			out := Append(nil, f)
			if e.Exact && string(out) != *e.Frame {
				t.Fatalf("encoded\n%s\nwant\n%s", out, *e.Frame)
			}
			again, err := DecodeServer(out)
			if err != nil || !reflect.DeepEqual(f, again) {
				t.Fatalf("encoded and decoded again: %+v, %v", again, err)
			}
		})
	}
}

func TestConformanceServerInvalid(t *testing.T) {
	for _, e := range corpus(t, "server-invalid.json") {
		t.Run(e.Name, func(t *testing.T) {
			f, err := DecodeServer(e.bytes(t))
			var fe *FrameError
			if f != nil || !errors.As(err, &fe) || fe.Err.Code != e.Code {
				t.Fatalf("got %+v, %v", f, err)
			}
		})
	}
}

// TestConformanceCoversEveryFrame holds the corpus to the protocol: a frame without data is a frame that other SDKs guess.
func TestConformanceCoversEveryFrame(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"client-valid.json", "server-valid.json"} {
		for _, e := range corpus(t, name) {
			seen[e.Want["t"].(string)] = true
		}
	}
	for _, f := range allFrames() {
		if !seen[f.Type()] {
			t.Errorf("no data for %s", f.Type())
		}
	}
}

func allFrames() []Frame {
	return []Frame{
		&Hello{}, &Confirm{}, &Sub{}, &Send{}, &Ack{}, &Sync{}, &History{}, &Open{}, &Change{T: "add"}, &Change{T: "remove"},
		&Change{T: "leave"}, &Members{}, &Ping{}, &Typing{}, &Welcome{}, &Confirmed{}, &Subbed{}, &Sent{}, &Acked{}, &Page{}, &Opened{},
		&MemberList{}, &Pong{}, &Event{}, &Conv{}, &Hint{}, &Error{}, &Bye{},
	}
}
