package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/posthorn/posthorn"
)

// The decoder's share of the cases about text and ids. The gateway's tests show the same inputs end to end.

// textFields are templates with @ where a string of a client goes; rid tells whether the rid stays known.
var textFields = []struct {
	name, frame string
	rid         bool
}{
	{"conv", `{"t":"send","rid":"r1","conv":@,"cmid":"x1","body":"b"}`, true},
	{"cmid", `{"t":"send","rid":"r1","conv":"c1","cmid":@,"body":"b"}`, true},
	{"body", `{"t":"send","rid":"r1","conv":"c1","cmid":"x1","body":@}`, true},
	{"rid", `{"t":"send","rid":@,"conv":"c1","cmid":"x1","body":"b"}`, false},
	{"data", `{"t":"send","rid":"r1","conv":"c1","cmid":"x1","data":{"a":[{"b":@}]}}`, true},
	{"a name in data", `{"t":"send","rid":"r1","conv":"c1","cmid":"x1","data":{@:1}}`, true},
	{"an unknown field", `{"t":"send","rid":"r1","conv":"c1","cmid":"x1","body":"b","x":[@]}`, true},
	{"an unknown name", `{"t":"send","rid":"r1","conv":"c1","cmid":"x1","body":"b",@:1}`, true},
	{"device", `{"t":"hello","rid":"r1","token":"tok","device":@}`, true},
	{"token", `{"t":"hello","rid":"r1","token":@,"device":"d1"}`, true},
	{"resume", `{"t":"hello","rid":"r1","token":"tok","device":"d1","resume":@}`, true},
	{"conv of ack", `{"t":"ack","rid":"r1","conv":@,"seq":7}`, true},
	{"conv of sync", `{"t":"sync","rid":"r1","conv":@,"after":7}`, true},
	{"conv of history", `{"t":"history","rid":"r1","conv":@,"before":7}`, true},
	{"conv of confirm", `{"t":"confirm","rid":"r1","conv":@,"pairs":[[7,"m7"]]}`, true},
	{"mid of confirm", `{"t":"confirm","rid":"r1","conv":"c1","pairs":[[7,@]]}`, true},
	{"conv of members", `{"t":"members","rid":"r1","conv":@}`, true},
	{"after of members", `{"t":"members","rid":"r1","conv":"c1","after":@}`, true},
	{"conv of leave", `{"t":"leave","rid":"r1","conv":@,"cmid":"x1"}`, true},
	{"cmid of leave", `{"t":"leave","rid":"r1","conv":"c1","cmid":@}`, true},
	{"users of add", `{"t":"add","rid":"r1","conv":"c1","cmid":"x1","users":["bob",@]}`, true},
	{"user of remove", `{"t":"remove","rid":"r1","conv":"c1","cmid":"x1","user":@}`, true},
	{"cmid of open", `{"t":"open","rid":"r1","cmid":@,"kind":"group"}`, true},
	{"title of open", `{"t":"open","rid":"r1","cmid":"x1","kind":"group","title":@}`, true},
	{"members of open", `{"t":"open","rid":"r1","cmid":"x1","kind":"group","members":[@]}`, true},
	{"after of sub", `{"t":"sub","rid":"r1","after":@}`, true},
	{"since of sub", `{"t":"sub","rid":"r1","since":@}`, true},
}

func TestB01_BadTextAtTheDecoder(t *testing.T) {
	bad := map[string]string{
		"U+0000": `"a\u0000b"`, "U+0000 alone": `"\u0000"`, "a raw U+0000": "\"a\x00b\"", "a lone surrogate": `"\ud83d"`,
		"invalid UTF-8": "\"a\xff\"", "a surrogate in UTF-8": "\"\xed\xa0\x80\"",
	}
	for _, f := range textFields {
		for name, text := range bad {
			t.Run(f.name+" "+name, func(t *testing.T) {
				_, err := Decode([]byte(strings.Replace(f.frame, "@", text, 1)), posthorn.DefaultLimits())
				fe, ok := errors.AsType[*FrameError](err)
				if !ok || fe.Err.Code != posthorn.CodeBadFrame || fe.Err.Code.Class() != posthorn.ItemTerminal {
					t.Fatalf("got %v", err)
				}
				// A raw U+0000 ends the search for a rid; in these frames the rid stands before it.
				if want := map[bool]string{true: "r1"}[f.rid]; fe.RID != want {
					t.Fatalf("rid %q, want %q", fe.RID, want)
				}
			})
		}
		t.Run(f.name+" good", func(t *testing.T) {
			if _, err := Decode([]byte(strings.Replace(f.frame, "@", `"ab\ud83d\ude00"`, 1)), posthorn.DefaultLimits()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestB02_ContentIsTheBytesThatCameAtTheDecoder(t *testing.T) {
	for _, data := range []string{`{"a":1}`, `{"a":1.0}`, `{ "a":1}`, `{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"a":"\u0041"}`, `{"a":"A"}`} {
		t.Run(data, func(t *testing.T) {
			f := decode[*Send](t, `{"t":"send","conv":"c1","cmid":"X","data":`+data+`}`)
			if string(f.Data) != data || f.Cmid != "X" {
				t.Fatalf("%s became %s", data, f.Data)
			}
		})
	}
	for _, body := range []string{"one", "two", "one "} {
		t.Run(body, func(t *testing.T) {
			if f := decode[*Send](t, fmt.Sprintf(`{"t":"send","conv":"c1","cmid":"X","body":%q}`, body)); *f.Body != body {
				t.Fatalf("%q became %q", body, *f.Body)
			}
		})
	}
}

func TestB04_TheDedupKeyIsExactBytesAtTheDecoder(t *testing.T) {
	for name, cmid := range map[string]string{"A": "A", "a": "a", "A and a space": "A ", "a space": " ", "NFC": "\u00e9", "NFD": "e\u0301", "64 bytes": strings.Repeat("x", 64)} {
		t.Run(name, func(t *testing.T) {
			if f := decode[*Send](t, fmt.Sprintf(`{"t":"send","conv":"c1","cmid":"%s","body":"b"}`, cmid)); f.Cmid != cmid {
				t.Fatalf("%q became %q", cmid, f.Cmid)
			}
		})
	}
	for name, c := range map[string]struct {
		cmid string
		code posthorn.Code
	}{
		"empty": {"", posthorn.CodeBadFrame}, "65 bytes": {strings.Repeat("x", 65), posthorn.CodeBadFrame},
		"22 runes of 3 bytes": {strings.Repeat("\u20ac", 22), posthorn.CodeBadFrame},
		// 1 MB is larger than any frame, which is found out first; both codes are terminal for the item.
		"1 MB": {strings.Repeat("x", 1_000_000), posthorn.CodeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, []byte(`{"t":"send","rid":"r1","conv":"c1","cmid":"`+c.cmid+`","body":"b"}`), c.code, "send", "r1")
		})
	}
}

func TestB38_IdsAreBoundedInBytesAtTheDecoder(t *testing.T) {
	t.Run("conv of 2,000 emoji", func(t *testing.T) {
		refused(t, []byte(`{"t":"send","rid":"r1","conv":"`+strings.Repeat("😀", 2000)+`","cmid":"x1","body":"b"}`), posthorn.CodeBadFrame, "send", "r1")
	})
	t.Run("conv a:b:7", func(t *testing.T) {
		if f := decode[*Send](t, `{"t":"send","conv":"a:b:7","cmid":"x1","body":"b"}`); f.Conv != "a:b:7" {
			t.Fatal(f.Conv)
		}
	})
	for _, f := range textFields {
		limit := map[string]int{"cmid": 64, "rid": 64}[strings.Fields(f.name)[0]]
		switch strings.Fields(f.name)[0] {
		case "conv", "device", "mid", "after", "users", "user", "members":
			limit = 128
		}
		if limit == 0 {
			continue
		}
		t.Run(f.name+" at the bound", func(t *testing.T) {
			if _, err := Decode([]byte(strings.Replace(f.frame, "@", `"`+strings.Repeat("😀", limit/4)+`"`, 1)), posthorn.DefaultLimits()); err != nil {
				t.Fatal(err)
			}
		})
		t.Run(f.name+" above it", func(t *testing.T) {
			_, err := Decode([]byte(strings.Replace(f.frame, "@", `"`+strings.Repeat("😀", limit/4)+`x"`, 1)), posthorn.DefaultLimits())
			if fe, ok := errors.AsType[*FrameError](err); !ok || fe.Err.Code != posthorn.CodeBadFrame {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func decode[F Frame](t *testing.T, frame string) F {
	t.Helper()
	f, err := Decode([]byte(frame), posthorn.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return f.(F)
}
