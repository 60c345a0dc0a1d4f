package lab

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/posthorn/posthorn/wire"
)

// beside is something that goes on next to the check.
type beside struct {
	stop    chan struct{} // closed when it is to end
	once    sync.Once
	wg      sync.WaitGroup
	trouble any // what ended it
}

// beside runs f until it is done or told to stop; at the trial's end at the latest.
func (t *trial) beside(f func(stop <-chan struct{})) *beside {
	b := &beside{stop: make(chan struct{})}
	b.wg.Go(func() {
		defer func() { b.trouble = recover() }()
		f(b.stop)
	})
	t.cleanup(func() { b.end(); b.wg.Wait() })
	return b
}

func (b *beside) end() { b.once.Do(func() { close(b.stop) }) }

// wait waits for its end, and passes on what ended it.
func (b *beside) wait() {
	b.wg.Wait()
	if b.trouble != nil {
		panic(b.trouble)
	}
}

// over tells whether a channel was closed.
func over(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// queue puts messages into a device's outbox without waiting for anything but their being there.
func (d *device) queue(conv string, n int) (cmids []string) {
	for range n {
		cmid := d.t.cmid()
		d.tell(command{Do: "send", Conv: conv, Cmid: cmid, Body: fmt.Sprintf("%s from %s", cmid, d.name)})
		cmids = append(cmids, cmid)
	}
	d.queued(cmids[n-1])
	return cmids
}

// allSettled waits until items were answered for good, and gives the last one's seq.
func (d *device) allSettled(cmids []string) (last int64) {
	for _, cmid := range cmids {
		r := d.settled(cmid)
		if r.Code != "" {
			d.t.abort("%s: %s was refused: %s", d.name, cmid, r.Code)
		}
		last = max(last, r.Seq)
	}
	return last
}

// settledSoFar counts a device's answered items.
func (t *trial) settledSoFar(who ...string) int {
	return t.hist.count(func(r *Record) bool { return slices.Contains(who, r.Who) && r.What == Settled })
}

// finish sends one last message, waits until every device holds it and the server knows, and asks for their stores.
func (t *trial) finish(conv string, from *device, all ...*device) {
	last := from.settled(from.send(conv, "the last one")).Seq
	for _, d := range all {
		d.upToDate(conv, last)
		left := len(d.dump())
		if t.res.OutboxLeft == nil || left > *t.res.OutboxLeft {
			t.res.OutboxLeft = &left
		}
	}
	expect(t, "outbox", 0, *t.res.OutboxLeft)
}

// timed sends messages one after the other while more holds, and gives how long each took.
func (p *peer) timed(conv string, more func(n int) bool) (took []time.Duration) {
	body := "timed"
	for n := 0; more(n); n++ {
		began := time.Now()
		if _, refused := p.call(&wire.Send{Conv: conv, Cmid: p.t.cmid(), Body: &body}); refused != nil {
			p.t.abort("%s: a send was refused: %v", p.name, refused)
		}
		took = append(took, time.Since(began))
	}
	return took
}

// p99 of a sample.
func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}
