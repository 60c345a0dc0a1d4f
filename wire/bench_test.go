package wire

import (
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

func BenchmarkDecode(b *testing.B) {
	lim := posthorn.DefaultLimits()
	for name, frame := range map[string]string{
		"send":    `{"t":"send","rid":"r-17","conv":"c-0194f3","cmid":"0194f3a2-7c1e-7b3a-9f00-5c1d2e3f4a5b","body":"See you at the harbour at eight, bring the maps."}`,
		"escapes": `{"t":"send","rid":"r-17","conv":"c-0194f3","cmid":"0194f3a2-7c1e-7b3a-9f00-5c1d2e3f4a5b","body":"See you\nat the harbour \"at eight\""}`,
		"ack":     `{"t":"ack","conv":"c-0194f3","seq":120934}`,
		"sync":    `{"t":"sync","rid":"r-18","conv":"c-0194f3","after":120934,"limit":100}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			in := []byte(frame)
			for b.Loop() {
				if _, err := Decode(in, lim); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendEvent(b *testing.B) {
	ev := sampleEvent()
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendEvent(buf[:0], &ev, 6)
	}
}

func sampleEvent() posthorn.Event {
	body := "See you at the harbour\nat eight, bring the \"maps\"."
	return posthorn.Event{
		Conv: "c-0194f3", Seq: 7, Kind: posthorn.KindMsg, Mid: "0194f3a2-7c1e-7b3a-9f00-5c1d2e3f4a5b", Sender: "ada", ViaServer: true,
		Cmid: "0194f3a2-7c1e-7b3a-9f00-000000000001", Body: &body, Data: []byte(`{"a":1.50}`), ReplyTo: 3, At: time.UnixMilli(1767000000123).UTC(),
	}
}
