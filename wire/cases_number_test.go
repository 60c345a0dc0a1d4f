package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/posthorn/posthorn"
)

// The decoder's share of the cases about numbers.

// cursors are the places of a sequence number or cursor, with @ where it goes and how the decoded value is read back.
var cursors = []struct {
	name, t, frame string
	zero           bool // 0 is a value here
	got            func(f Frame) int64
}{
	{"ack seq", "ack", `{"t":"ack","rid":"r1","conv":"c1","seq":@}`, true, func(f Frame) int64 { return f.(*Ack).Seq }},
	{"ack rv", "ack", `{"t":"ack","rid":"r1","conv":"c1","seq":7,"rv":@}`, true, func(f Frame) int64 { return *f.(*Ack).RV }},
	{"sync after", "sync", `{"t":"sync","rid":"r1","conv":"c1","after":@}`, true, func(f Frame) int64 { return f.(*Sync).After }},
	{"sync tail", "sync", `{"t":"sync","rid":"r1","conv":"c1","tail":@}`, false, func(f Frame) int64 { return int64(f.(*Sync).Tail) }},
	{"sync rv", "sync", `{"t":"sync","rid":"r1","conv":"c1","after":7,"rv":@}`, true, func(f Frame) int64 { return *f.(*Sync).RV }},
	{"history before", "history", `{"t":"history","rid":"r1","conv":"c1","before":@}`, true, func(f Frame) int64 { return f.(*History).Before }},
	{"send reply_to", "send", `{"t":"send","rid":"r1","conv":"c1","cmid":"x1","body":"b","reply_to":@}`, false, func(f Frame) int64 { return f.(*Send).ReplyTo }},
	{"confirm seq", "confirm", `{"t":"confirm","rid":"r1","conv":"c1","pairs":[[@,"m7"]]}`, true, func(f Frame) int64 { return f.(*Confirm).Pairs[0].Seq }},
	{"hello install", "hello", `{"t":"hello","rid":"r1","token":"tok","device":"d1","install":@}`, true, func(f Frame) int64 { return *f.(*Hello).Install }},
	{"hello epoch", "hello", `{"t":"hello","rid":"r1","token":"tok","device":"d1","epoch":@}`, true, func(f Frame) int64 { return f.(*Hello).Epoch }},
}

var limits = []struct {
	name, frame string
	got         func(f Frame) int
}{
	{"sync", `{"t":"sync","rid":"r1","conv":"c1","after":7,"limit":@}`, func(f Frame) int { return f.(*Sync).Limit }},
	{"history", `{"t":"history","rid":"r1","conv":"c1","before":7,"limit":@}`, func(f Frame) int { return f.(*History).Limit }},
	{"sub", `{"t":"sub","rid":"r1","limit":@}`, func(f Frame) int { return f.(*Sub).Limit }},
	{"members", `{"t":"members","rid":"r1","conv":"c1","limit":@}`, func(f Frame) int { return f.(*Members).Limit }},
}

func put(frame, value string) []byte { return []byte(strings.Replace(frame, "@", value, 1)) }

func TestB14_CursorValuesAtTheDecoder(t *testing.T) {
	malformed := []string{"9007199254740992", "9223372036854775807", "9223372036854775808", "18446744073709551623", "-1", "-0", "null", `"7"`, "7.0", "7e0", "1e3", "true"}
	for _, c := range cursors {
		for _, v := range malformed {
			t.Run(c.name+" "+v, func(t *testing.T) { refused(t, put(c.frame, v), posthorn.CodeBadFrame, c.t, "r1") })
		}
		// head+1 is a lawful number: only the store knows that it lies ahead (CURSOR_AHEAD).
		for _, v := range []int64{0, 1, 8, posthorn.MaxSeq} {
			t.Run(fmt.Sprint(c.name, " ", v), func(t *testing.T) {
				if v == 0 && !c.zero {
					refused(t, put(c.frame, "0"), posthorn.CodeBadFrame, c.t, "r1")
					return
				}
				f, err := Decode(put(c.frame, fmt.Sprint(v)), posthorn.DefaultLimits())
				if err != nil || c.got(f) != v {
					t.Fatalf("%+v, %v", f, err)
				}
			})
		}
	}
	for name, frame := range map[string]string{
		"ack": `{"t":"ack","rid":"r1","conv":"c1"}`, "sync": `{"t":"sync","rid":"r1","conv":"c1"}`, "history": `{"t":"history","rid":"r1","conv":"c1"}`,
		"confirm": `{"t":"confirm","rid":"r1","conv":"c1","pairs":[["m7"]]}`,
	} {
		t.Run(name+" missing", func(t *testing.T) { refused(t, []byte(frame), posthorn.CodeBadFrame, name, "r1") })
	}
	for _, l := range limits {
		for _, v := range append(malformed, "0") {
			t.Run("limit of "+l.name+" "+v, func(t *testing.T) { refused(t, put(l.frame, v), posthorn.CodeBadFrame, l.name, "r1") })
		}
		for v, want := range map[string]int{"1": 1, "500": 500, "501": 500, "1000000000": 500, "9007199254740991": 500} {
			t.Run("limit of "+l.name+" "+v, func(t *testing.T) {
				f, err := Decode(put(l.frame, v), posthorn.DefaultLimits())
				if err != nil || l.got(f) != want {
					t.Fatalf("%+v, %v", f, err)
				}
			})
		}
	}
}

func TestB72_NumbersBeyond2To53AtTheDecoder(t *testing.T) {
	for _, c := range cursors {
		t.Run(c.name+" close to 2^53", func(t *testing.T) {
			for v := posthorn.MaxSeq - 2; v <= posthorn.MaxSeq; v++ {
				f, err := Decode(put(c.frame, fmt.Sprint(v)), posthorn.DefaultLimits())
				if err != nil || c.got(f) != v {
					t.Fatalf("%d: %+v, %v", v, f, err)
				}
			}
		})
		t.Run(c.name+" beyond", func(t *testing.T) {
			for v := posthorn.MaxSeq + 1; v <= posthorn.MaxSeq+3; v++ {
				refused(t, put(c.frame, fmt.Sprint(v)), posthorn.CodeBadFrame, c.t, "r1")
			}
		})
	}
	t.Run("in data of send", func(t *testing.T) {
		if f := decode[*Send](t, `{"t":"send","conv":"c1","cmid":"x1","data":{"messageid":9007199254740993}}`); string(f.Data) != `{"messageid":9007199254740993}` {
			t.Fatal(string(f.Data))
		}
	})
	for _, v := range []int64{posthorn.MaxSeq - 1, posthorn.MaxSeq, posthorn.MaxSeq + 1, 9007199254740993, 1<<63 - 1} {
		t.Run(fmt.Sprint("pushed, sent, paged ", v), func(t *testing.T) {
			ev := posthorn.Event{Conv: "c1", Seq: v, Kind: posthorn.KindMsg, Data: []byte(fmt.Sprintf(`{"messageid":%d}`, v))}
			for _, f := range []Frame{
				&Event{Prev: v - 1, Ev: ev}, &Sent{Conv: "c1", Seq: v, Prev: v - 1, Mid: "m", Epoch: v, At: v}, &Acked{Conv: "c1", Delivered: v},
				&Page{Page: posthorn.Page{Conv: "c1", Events: []posthorn.Event{ev}, Skip: [][2]int64{{v - 1, v}}, Upto: v, Head: v, Floor: v, Start: v, Epoch: v}},
				&Hint{Conv: "c1", Head: v, RV: v}, &Confirmed{Conv: "c1", Seq: v}, &Opened{Conv: "c1", Head: v},
			} {
				same(t, f)
			}
		})
	}
}
