package lab

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	lockedFor = 2 * time.Second
	timedBase = 150 // sends of each of the others before the lock
)

// lockedConversation: somebody else's transaction holds the row of one conversation. What is sent to others goes on as
// before; what is sent to it waits, in order, and comes when the lock is gone.
func lockedConversation(t *trial) {
	a := t.gateway("A", withSweep(0))
	held, free := t.group(a, "ana", "bo"), t.group(a, "cy", "bo")
	ana := t.device(a, "ana", "phone")
	ana.start(a.url)
	ana.upToDate(held, 1)
	others := make([]*peer, 3)
	for i := range others {
		others[i], _ = t.peer(a, "cy", fmt.Sprint("phone", i), 0)
	}
	before := timedTogether(others, free, func(n int) bool { return n < timedBase })

	conn, err := pgx.Connect(t.ctx, t.db.pool.Config().ConnString())
	t.must(err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.ctx)) }()
	tx, err := conn.Begin(t.ctx)
	t.must(err)
	_, err = tx.Exec(t.ctx, `select 1 from posthorn.conversations where conv_id = $1 for update`, held)
	t.must(err)
	t.hist.Add(Record{Who: "postgres", What: Note, Conv: held, Text: "a stranger holds the conversation"})
	bo, _ := t.peer(a, "bo", "phone", 0)
	until := time.Now().Add(lockedFor)
	var early int
	holder := t.beside(func(stop <-chan struct{}) {
		select {
		case <-time.After(time.Until(until)):
		case <-stop:
		}
		early = t.hist.count(func(r *Record) bool { return r.frame(In, "sent") && r.Conv == held })
		t.must(tx.Rollback(t.ctx))
		t.hist.Add(Record{Who: "postgres", What: Note, Conv: held, Text: "the stranger lets go"})
	})
	waiting := ana.queue(held, 5)
	var spread []string
	writer := t.beside(func(<-chan struct{}) { spread = t.sendSpread(bo, held, others[0].name, 8) })
	during := timedTogether(others, free, func(int) bool { return time.Now().Before(until) })
	holder.wait()
	writer.wait()

	expect(t, "answered while the conversation was held", 0, early)
	bound := max(5*p99(before), 250*time.Millisecond)
	t.expectThat(p99(during) <= bound, "p99 of the others within "+ms(bound), fmt.Sprintf("p99 of the others %s, before %s", ms(p99(during)), ms(p99(before))))
	var seqs []int64
	for _, cmid := range waiting {
		seqs = append(seqs, ana.settled(cmid).Seq)
	}
	expect(t, "the waiting ones in order", true, rising(seqs))
	seqs = nil
	for _, cmid := range spread {
		seqs = append(seqs, bo.sent(cmid).Seq)
	}
	expect(t, "those written one by one in order", true, rising(seqs))
	ana.upToDate(held, 1+5+8)
	t.judge(validD1(), validD2(), validP1(), validO1())
}

// sendSpread writes messages without waiting for their answers, but so that each finds another batch: some of another
// peer's are answered in between.
func (t *trial) sendSpread(p *peer, conv, other string, n int) (cmids []string) {
	answered := func(r *Record) bool { return r.Who == other && r.frame(In, "sent") }
	for range n {
		cmids = append(cmids, p.write(conv))
		before := t.hist.count(answered)
		ctx, cancel := context.WithTimeout(t.ctx, 200*time.Millisecond) // where the others stand still there is nothing to find
		_, _ = t.hist.await(ctx, before+3, answered)
		cancel()
	}
	return cmids
}

// timedTogether has peers send beside one another.
func timedTogether(peers []*peer, conv string, more func(int) bool) (all []time.Duration) {
	var mu sync.Mutex
	var parts []*beside
	for _, p := range peers {
		parts = append(parts, p.t.beside(func(stop <-chan struct{}) {
			took := p.timed(conv, func(n int) bool { return more(n) && !over(stop) })
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		}))
	}
	for _, b := range parts {
		b.wait()
	}
	return all
}

func rising(seqs []int64) bool {
	for i := 1; i < len(seqs); i++ {
		if seqs[i] <= seqs[i-1] {
			return false
		}
	}
	return len(seqs) > 1
}
