package wire

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

// same fails unless the frame is read back as it was.
func same(t *testing.T, f Frame) {
	t.Helper()
	got, err := DecodeServer(Append(nil, f))
	if err != nil || !reflect.DeepEqual(got, f) {
		t.Fatalf("%s\nbecame %+v, %v", Append(nil, f), got, err)
	}
}

func TestAppendEscapesOnlyWhatJSONRequires(t *testing.T) {
	for in, want := range map[string]string{
		"<a href='x'>&</a>/": `"<a href='x'>&</a>/"`, "\u2028\u2029\u007f\u00e9😀": "\"\u2028\u2029\u007f\u00e9😀\"",
		"\"\\\b\f\n\r\t\x01\x1f": `"\"\\\b\f\n\r\t\u0001\u001f"`, "a\xffb": "\"a\uFFFDb\"", "\xe2\x82": "\"\uFFFD\uFFFD\"", "": `""`, "\uFFFD": "\"\uFFFD\"",
	} {
		if got := string(quote(nil, in)); got != want {
			t.Errorf("%q became %s, want %s", in, got, want)
		}
	}
}

func TestAppendKeepsWhatStandsBefore(t *testing.T) {
	for _, f := range allFrames() {
		if out := string(Append([]byte("before"), f)); !strings.HasPrefix(out, `before{"t":"`+f.Type()+`"`) || !strings.HasSuffix(out, "}") {
			t.Errorf("%s: %s", f.Type(), out)
		}
	}
}

func TestAppendOfARecalledEventGivesNoContentAway(t *testing.T) {
	ev := sampleEvent()
	ev.Recalled = true
	if out := string(AppendEvent(nil, &ev, 6)); strings.Contains(out, "harbour") || strings.Contains(out, "1.50") || !strings.Contains(out, `"recalled":true`) {
		t.Fatal(out)
	}
}

// TestBodiesOverHTTPAreTheFramesWithoutTAndRID: one shape, two ways to ask for it.
func TestBodiesOverHTTPAreTheFramesWithoutTAndRID(t *testing.T) {
	ev := sampleEvent()
	page := posthorn.Page{Conv: "c1", Events: []posthorn.Event{ev, ev}, Skip: [][2]int64{{1, 2}}, Upto: 7, Head: 9, More: true, Epoch: 3}
	list := posthorn.List{Entries: []posthorn.Entry{{Conv: "c1", Kind: posthorn.Group, Last: &ev, LastAt: time.UnixMilli(5).UTC()}}, Next: "c1", Since: "s"}
	for _, c := range []struct {
		name, prefix, suffix string
		frame                Frame
		body                 []byte
	}{
		{"page", `{"t":"page","rid":"r1",`, "", &Page{RID: "r1", Page: page}, AppendPageBody(nil, &page)},
		{"list", `{"t":"subbed","rid":"r1",`, "", &Subbed{RID: "r1", Convs: list.Entries, Next: list.Next, Since: list.Since}, AppendListBody(nil, &list)},
		{"event", `{"t":"event","prev":6,"ev":{`, "}", &Event{Prev: 6, Ev: ev}, AppendEventBody(nil, &ev)},
		{"entry", `{"t":"conv","entry":{`, "}", &Conv{Entry: list.Entries[0]}, AppendEntry(nil, &list.Entries[0])},
	} {
		if frame := string(Append(nil, c.frame)); frame != c.prefix+string(c.body[1:])+c.suffix {
			t.Errorf("%s:\n%s\n%s", c.name, frame, c.body)
		}
	}
}
