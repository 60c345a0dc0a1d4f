package lab

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	cutFault      = "the LISTEN connection is terminated; later another one is frozen without FIN"
	slowListen    = "store.listen:delay=500:1" // all but the first: so that a message falls before it
	listenerBound = 20 * time.Second           // the probe's interval and deadline, and room
	listening     = `select coalesce(max(pid), 0) from pg_stat_activity where datname = current_database() and usename = 'posthorn' and query ilike 'listen %'`
)

// listenerCut: the receiver's gateway loses the connection on which it listens, first by an end that it is told of, then
// by silence. The sweep is off and the poll slow, so that what comes promptly was brought by the bell.
func listenerCut(t *trial) {
	a := t.gateway("A", withSweep(0), withSender(t))
	net := t.cable(t.db.c)
	b := t.gateway("B", withSweep(0), by(t, net), withFlags("--tail-poll-max", "60s"), withFault(slowListen))
	conv := t.group(a, "ana", "bo")
	ana, bo := t.device(a, "ana", "phone"), t.device(b, "bo", "phone")
	ana.start(a.url)
	bo.start(b.url)
	bo.upToDate(conv, 1)

	t.quiet("posthorn")
	t.belled("A", ana, bo, conv)
	t.quiet("posthorn")
	first := t.listener()
	t.must(t.db.c.admin(t.ctx, fmt.Sprintf("SELECT pg_terminate_backend(%d)", first)))
	t.until("the listening connection to be terminated", func() (gone bool, err error) {
		err = t.db.one(t.ctx, `select not exists (select 1 from pg_stat_activity where pid = $1)`, []any{first}, &gone)
		return gone, err
	})
	t.hist.Add(Record{Who: "postgres", What: Note, Text: "the listening connection is terminated"})
	t.belled("B", ana, bo, conv) // committed while nobody listened
	second := t.newListener(first)
	t.quiet("posthorn")
	t.belled("C", ana, bo, conv)

	frozen := net.freezeOne(func(said string) bool { return strings.Contains(strings.ToUpper(said), "LISTEN ") })
	expect(t, "listening connections frozen", 1, frozen)
	t.hist.Add(Record{Who: "postgres", What: Note, Text: "the listening connection is frozen"})
	began := time.Now()
	late := t.arrives("D", ana, bo, conv)
	t.expectThat(late <= listenerBound, "D pushed within "+ms(listenerBound), "D pushed within "+ms(late))
	t.newListener(second)
	took := time.Since(began)
	t.expectThat(took <= listenerBound, "another listener within "+ms(listenerBound), "another listener within "+ms(took))
	t.belled("E", ana, bo, conv)
	t.judge(validD1(), validD3(), validD4(), validO1())
}

// belled sends a message that must come promptly.
func (t *trial) belled(name string, ana, bo *device, conv string) {
	took := t.arrives(name, ana, bo, conv)
	t.expectThat(took <= promptly, fmt.Sprintf("%s pushed within %s", name, ms(promptly)), fmt.Sprintf("%s pushed within %s", name, ms(took)))
}

// arrives sends a message and waits until it is pushed, for as long as the bound allows.
func (t *trial) arrives(name string, ana, bo *device, conv string) time.Duration {
	sent := ana.settled(ana.send(conv, name))
	ctx, cancel := context.WithTimeoutCause(t.ctx, listenerBound, fmt.Errorf("%s was not pushed within %v", name, listenerBound))
	defer cancel()
	found, err := t.hist.await(ctx, 1, func(r *Record) bool {
		return r.Who == bo.name && r.frame(In, "event") && r.Conv == conv && r.Seq == sent.Seq
	})
	t.must(err)
	return found[0].At.Sub(sent.At)
}

// listener is the backend behind the listening connection of B.
func (t *trial) listener() (pid int) {
	t.until("B to listen", func() (bool, error) {
		err := t.db.one(t.ctx, listening, nil, &pid)
		return pid != 0, err
	})
	return pid
}

// newListener waits for another one.
func (t *trial) newListener(old int) (pid int) {
	ctx, cancel := context.WithTimeoutCause(t.ctx, listenerBound+5*time.Second, fmt.Errorf("no other connection listens"))
	defer cancel()
	t.must(poll(ctx, func() (bool, error) {
		err := t.db.one(t.ctx, strings.Replace(listening, "usename", fmt.Sprintf("pid <> %d and usename", old), 1), nil, &pid)
		return pid != 0, err
	}))
	return pid
}
