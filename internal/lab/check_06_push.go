package lab

import (
	"fmt"
	"time"

	"github.com/posthorn/posthorn"
)

const (
	lostPushFault = "gw.push:drop"
	sweepEvery    = 500 * time.Millisecond
)

// repairBound is the bound of D5 at this interval of the sweep, no less than the 3 s that the check allows a busy machine.
func repairBound() time.Duration {
	return max(3*time.Second, posthorn.DefaultLimits().SweepGrace+sweepEvery+250*time.Millisecond)
}

// lostPushSwept: no push ever arrives. The sweep notices that the device lags, one hint makes it sync.
func lostPushSwept(t *trial) {
	a := t.gateway("A", withFault(lostPushFault), withSweep(sweepEvery))
	conv := t.group(a, "ana", "bo")
	ana, bo := t.device(a, "ana", "phone"), t.device(a, "bo", "phone")
	ana.start(a.url)
	bo.start(a.url)
	bo.upToDate(conv, 1)
	from := time.Now()
	sent := ana.settled(ana.send(conv, "never pushed"))
	t.hist.Add(Record{At: sent.At, Who: bo.name, What: Lost, Conv: conv, Seq: sent.Seq, Text: "its push"})
	bo.holds(conv, sent.Seq)
	bo.delivered(conv, sent.Seq)

	events := t.hist.count(func(r *Record) bool { return r.Who == bo.name && r.frame(In, "event") && r.At.After(from) })
	expect(t, "events pushed since the send", 0, events)
	t.expectHints(bo.name, from, sent.Seq)
	expect(t, "delivered", sent.Seq, t.stored(bo.name, conv))
	took, _ := repair(t.hist.Records(), &Record{Who: bo.name, Conv: conv, Seq: sent.Seq, At: sent.At})
	t.observed = append(t.observed, "repaired after "+ms(took))
	t.judge(validD3(), validD4(), validD5(repairBound()), validO1())
}

// expectHints: one hint, by the sweep. On a machine so busy that the sync and the flush of its ack take longer than an
// interval, one more for each.
func (t *trial) expectHints(who string, from time.Time, seq int64) {
	acked := t.await(who+" to be told that its ack is stored", func(r *Record) bool {
		return r.Who == who && r.frame(In, "acked") && r.At.After(from) && r.Delivered >= seq
	})
	hints := t.hist.find(func(r *Record) bool { return r.Who == who && r.frame(In, "hint") && r.At.After(from) })
	allowed := 1
	if len(hints) > 0 {
		allowed += int(acked.At.Sub(hints[0].At) / sweepEvery)
	}
	why := ""
	for _, h := range hints {
		if why == "" || h.Why != "sweep" {
			why = h.Why
		}
	}
	t.expectThat(len(hints) >= 1 && len(hints) <= allowed && why == "sweep", "hints 1 (why=sweep)", fmt.Sprintf("hints %d (why=%s)", len(hints), why))
}
