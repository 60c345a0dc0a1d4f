package lab

import (
	"fmt"
	"math"
)

const (
	writesEach = 60 // of each of four writers
	pageSize   = 7
)

// syncUnderWrites: a device reads page after page, each of a few events, while four writers behind two gateways add to the
// same conversation. It was in and out before, so that there are stretches that it may not see.
func syncUnderWrites(t *trial) {
	a, b := t.gateway("A", withSweep(0)), t.gateway("B", withSweep(0))
	conv := t.group(a, "ana", "bo", "cy")
	var writers []*peer
	for i, g := range []*gateway{a, b, a, b} {
		w, _ := t.peer(g, []string{"ana", "bo"}[i%2], fmt.Sprint("phone", i), 0)
		writers = append(writers, w)
	}
	for range 2 {
		writers[0].mustChange("remove", conv, "cy")
		for range 5 {
			writers[1].mustSend(conv)
		}
		writers[0].mustChange("add", conv, "cy")
		writers[1].mustSend(conv)
	}
	reader, _ := t.peer(b, "cy", "phone", 0)
	var parts []*beside
	for _, w := range writers {
		parts = append(parts, t.beside(func(stop <-chan struct{}) {
			for n := 0; n < writesEach && !over(stop); n++ {
				w.mustSend(conv)
			}
		}))
	}
	at, partial := t.pageOn(reader, conv)
	for _, b := range parts {
		b.wait()
	}
	tables := t.tables()
	want := len(tables.visible("cy", conv, 0, math.MaxInt64))
	got := t.hist.count(func(r *Record) bool { return r.Who == reader.name && r.What == Applied })
	expect(t, "events read", want, got)
	expect(t, "read up to", tables.head("cy", conv), at)
	t.expectThat(partial >= 10, "10 or more pages with more behind them", fmt.Sprintf("%d pages with more behind them", partial))
	t.judge(validD1(), validP1(), validO1(), validV1())
}

// pageOn reads until all that the writers will write was read, each time when a few pages are there.
func (t *trial) pageOn(reader *peer, conv string) (at int64, partial int) {
	sent := func(r *Record) bool { return r.frame(In, "sent") && r.Conv == conv }
	total := t.hist.count(sent) + 4*writesEach // at least what is to come
	for {
		written := min(t.hist.count(sent)+3*pageSize, total)
		t.awaitN("the writers to write on", written, sent)
		for {
			page := reader.syncSome(conv, at, pageSize)
			if page.More && page.Upto <= at {
				t.abort("a page after %d says that there is more, and moves to %d", at, page.Upto)
			}
			at = page.Upto
			if !page.More {
				break
			}
			partial++
		}
		if written == total {
			return at, partial
		}
	}
}
