package gateway

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// Suspended, a gateway serves nothing and closes nothing; what it did not push it hints afterwards.
func TestG1_Suspend(t *testing.T) {
	h := build(t, limits())
	c := h.enter("ada/d")
	s := h.socket("ada")
	h.g.Suspend(true)
	h.g.Suspend(true)
	for _, f := range []string{
		`{"t":"send","rid":"1","conv":"c","cmid":"x","body":"b"}`, `{"t":"ack","rid":"2","conv":"c","seq":1}`,
		`{"t":"sub","rid":"3"}`, `{"t":"sync","rid":"4","conv":"c","after":0}`, `{"t":"leave","rid":"5","conv":"c","cmid":"l"}`,
	} {
		c.say("%s", f)
		if e := c.want("error"); e.Code != "UNAVAILABLE" || !strings.Contains(e.raw, `"retry_ms":1000`) {
			t.Fatalf("%s: %s", f, e.raw)
		}
	}
	c.say(`{"t":"ack","conv":"c","seq":1}`)
	c.say(`{"t":"ping","rid":"p"}`)
	if f := c.want("pong"); f.RID != "p" { // and nothing before it
		t.Fatal(f.raw)
	}
	h.log.locked(func() {
		if h.log.ops != 0 || h.log.acks != 0 {
			t.Errorf("%d ops, %d acks were taken", h.log.ops, h.log.acks)
		}
	})
	if s.PushEvent([]byte(`{"t":"event"}`), "c", 7) || s.PushConv(posthorn.Entry{Conv: "n"}) {
		t.Error("a push is taken")
	}
	s.PushHint("c", 7, 0, "overflow")

	// A new connection finds the same.
	d := h.connect(false, false)
	d.say(`{"t":"hello","rid":"h","token":"bo/d","device":"d"}`)
	if e := d.want("error"); e.Code != "UNAVAILABLE" {
		t.Fatal(e.raw)
	}
	h.g.Suspend(false)
	if f := c.want("hint"); f.Conv != "c" || f.Head != 7 {
		t.Fatal(f.raw)
	}
	d.say(`{"t":"hello","rid":"h","token":"bo/d","device":"d"}`)
	d.want("welcome")
	if !s.PushEvent([]byte(`{"t":"event"}`), "c", 8) {
		t.Error("no push is taken afterwards")
	}
	c.want("event")
}

// Whatever is pushed while it comes and goes: each conversation of which an event was refused or dropped gets a hint that
// reaches it, and none is written while it is on.
func TestG1_SuspendLosesNothing(t *testing.T) {
	for round := range 50 {
		var q queue
		q.init(8, 1<<20)
		written, missed, hinted := map[string]int64{}, map[string]int64{}, map[string]int64{}
		var wg sync.WaitGroup
		stop := make(chan struct{})
		wg.Go(func() { // the writer
			var b batch
			for {
				select {
				case <-q.wake:
				case <-stop:
					return
				}
				for q.take(&b) {
					for i := range b.items {
						if it := &b.items[i]; !q.skip(it) && it.kind == event {
							written[it.conv] = max(written[it.conv], it.seq)
						}
					}
					for conv, x := range b.hints {
						hinted[conv] = max(hinted[conv], x.Head)
					}
					q.wrote(&b)
					b.items, b.hints = b.items[:0], nil
				}
			}
		})
		wg.Go(func() {
			for range 20 {
				q.sleep(true)
				q.sleep(false)
			}
		})
		for seq := int64(1); seq <= 200; seq++ {
			conv := fmt.Sprint(seq % 3)
			if !q.push(item{frame: []byte("x"), kind: event, conv: conv, seq: seq}) {
				missed[conv] = seq
				q.hint(wire.Hint{Conv: conv, Head: seq, Why: "overflow"})
			}
		}
		for q.pending() {
		}
		close(stop)
		wg.Wait()
		for conv := range missed {
			if hinted[conv] < missed[conv] {
				t.Fatalf("round %d: %s was refused %d, hinted %d", round, conv, missed[conv], hinted[conv])
			}
		}
		for conv, seq := range map[string]int64{"0": 198, "1": 199, "2": 200} {
			if max(written[conv], hinted[conv]) < seq {
				t.Fatalf("round %d: %s ends at %d, written %d, hinted %d", round, conv, seq, written[conv], hinted[conv])
			}
		}
	}
}

func (q *queue) pending() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) > 0 || len(q.hints) > 0 || q.pushes > 0 || q.asleep.Load()
}
