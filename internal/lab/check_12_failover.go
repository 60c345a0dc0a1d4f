package lab

import (
	"fmt"
	"sync"
	"time"
)

// primaryFailover: the primary is killed while everybody sends, after its network to the synchronous standby has died, so
// that the last commits are on it alone. The standby is promoted. One gateway follows an address that moves, the other one
// looks for the server that takes writes; neither is restarted.
func primaryFailover(t *trial) {
	old := t.db.c
	s, between := t.standby(old)
	t.waitForStandby()
	moves, first, second := t.cable(old), t.cable(old), t.cable(s)
	a := t.gateway("A", withSweep(sweepEvery), by(t, moves))
	b := t.gateway("B", withSweep(sweepEvery), by(t, first, second))
	conv := t.group(a, "ana", "bo")
	ana, bo := t.device(a, "ana", "phone"), t.device(b, "bo", "phone")
	ana.start(a.url, withTimeout(replyTimeout))
	bo.start(b.url, withTimeout(replyTimeout))
	ana.upToDate(conv, 1)
	bo.upToDate(conv, 1)
	epoch := t.tables().Epoch

	fromAna, fromBo := ana.queue(conv, 2*loadEach), bo.queue(conv, 2*loadEach)
	t.until("some of the messages to be answered", func() (bool, error) { return t.settledSoFar(ana.name, bo.name) >= 10+t.rng.IntN(20), nil })
	between.freeze()
	frozen := t.settledSoFar(ana.name, bo.name)
	// Sends either wait for the standby, as they must, or are answered without it, which the promoted standby will show.
	last, since := frozen, time.Now()
	t.until("sends to wait for the standby", func() (bool, error) {
		now := t.settledSoFar(ana.name, bo.name)
		if now != last {
			last, since = now, time.Now()
		}
		n, err := t.db.sessions(t.ctx, "wait_event = 'SyncRep'")
		return now > frozen+10 || n > 0 && time.Since(since) > 500*time.Millisecond, err
	})
	resume := sync.OnceFunc(t.smp.rest())
	t.cleanup(resume)
	t.must(old.Kill(t.ctx))
	t.hist.Add(Record{Who: "postgres", What: Crash, Text: "the primary is killed"})
	between.cut() // and it stays frozen: what the standby had not been given it never gets
	t.promote(s)
	resume()
	moves.lead(s)
	crash, rows, tables := t.crashed(), 0, t.tables()
	told := t.hist.find(func(r *Record) bool { return r.frame(In, "sent") && r.At.Before(crash) })
	for _, r := range told {
		if row := tables.row(r.Conv, r.Seq); row != nil && row.Mid == r.Mid {
			rows++
		}
	}
	t.res.RowsAfterCrash = &rows
	expect(t, "answered messages that the new primary has lost", 0, len(told)-rows)

	ana.allSettled(fromAna)
	bo.allSettled(fromBo)
	t.finish(conv, ana, ana, bo)
	expect(t, "epoch", epoch, t.tables().Epoch)
	t.observed = append(t.observed, fmt.Sprintf("answered before the failover %d", len(told)))
	t.judge(validD1(), validD2(), validD3(), validD4(), validD6(), validP1(), validO1(), validStores())
}
