//go:build !race

package wire

import (
	"testing"

	"github.com/posthorn/posthorn"
)

// Allocations are counted without the race detector, under which a sync.Pool forgets at random, jsontext's too.

func TestAppendEventAllocatesNothing(t *testing.T) {
	ev := sampleEvent()
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { buf = AppendEvent(buf[:0], &ev, 6) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// TestDecodeAllocatesTheFrameAndItsText: one for the frame, one for each text in it.
func TestDecodeAllocatesTheFrameAndItsText(t *testing.T) {
	lim := posthorn.DefaultLimits()
	for frame, most := range map[string]float64{
		`{"t":"ack","conv":"c1","seq":7}`:                                   2,
		`{"t":"send","rid":"r1","conv":"c1","cmid":"x1","body":"hello"}`:    5,
		`{"t":"send","conv":"c1","cmid":"x1","body":"b","data":{"a":1.50}}`: 5,
	} {
		in := []byte(frame)
		if n := testing.AllocsPerRun(100, func() { _, _ = Decode(in, lim) }); n > most {
			t.Errorf("%s: %v allocations, want %v", frame, n, most)
		}
	}
}
