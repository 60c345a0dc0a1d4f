package lab

import (
	"fmt"
	"net/http"
	"strings"
)

// splitBrain: after a failover the old primary comes back and takes writes, and the address of one gateway leads to it.
// The gateway has seen a later timeline: it serves nothing from there, says why, and writes nothing there. Another gateway
// has both in its list of hosts, the old one first, and passes it over.
func splitBrain(t *trial) {
	old := t.db.c
	s, between := t.standby(old)
	t.waitForStandby()
	lost, first, second := t.cable(old), t.cable(old), t.cable(s)
	lease := withFlags("--lease", epochLease.String())
	a, b := t.gateway("A", withSweep(sweepEvery), by(t, lost), lease), t.gateway("B", withSweep(sweepEvery), by(t, first, second), lease)
	conv := t.group(a, "ana", "bo")
	ana, bo := t.device(a, "ana", "phone"), t.device(b, "bo", "phone")
	ana.start(a.url, withTimeout(replyTimeout))
	bo.start(b.url, withTimeout(replyTimeout))
	ana.settled(ana.send(conv, "before the failover"))
	epoch := t.tables().Epoch
	t.must(old.Kill(t.ctx))
	t.hist.Add(Record{Who: "postgres", What: Crash, Text: "the primary is killed"})
	between.cut()
	t.promote(s)
	lost.lead(s)
	ana.settled(ana.send(conv, "after the failover"))
	bo.settled(bo.send(conv, "after the failover"))

	t.must(old.Restart(t.ctx))
	t.must(old.admin(t.ctx, "ALTER SYSTEM RESET synchronous_standby_names")) // it would wait for somebody who has gone
	t.must(old.admin(t.ctx, "SELECT pg_reload_conf()"))
	before := t.eventsAt(old)
	lost.lead(old)
	second.cut() // B has to choose again
	t.hist.Add(Record{Who: "postgres", What: Note, Text: "the old primary is back, and A is led to it"})
	said := ""
	t.until("A to refuse the old primary", func() (bool, error) {
		ctx, cancel := t.deadline("A's conditions")
		defer cancel()
		ok, text, err := a.conditions(ctx)
		said = text
		return !ok && strings.Contains(text, "older primary"), err
	})
	cmid := ana.send(conv, "which the old primary must not get")
	t.await(ana.name+" to be told that nothing is served", func(r *Record) bool {
		return r.Who == ana.name && (r.frame(In, "error") && r.Code == "UNAVAILABLE" || r.frame(In, "bye") || r.What == State && r.Type == "offline")
	})
	status := t.refusedOverHTTP(a, conv)
	expect(t, "a send over HTTP is answered with status", http.StatusServiceUnavailable, status)
	expect(t, "events that the old primary has got", 0, t.eventsAt(old)-before)
	alarmed := strings.Contains(a.tail(10000), "an older primary has come back")
	expect(t, "alarm", true, alarmed)
	bo.settled(bo.send(conv, "beside the old primary"))

	lost.lead(s)
	ana.settled(cmid)
	t.finish(conv, ana, ana, bo)
	expect(t, "epoch", epoch, t.tables().Epoch)
	t.observed = append(t.observed, fmt.Sprintf("A said %q", strings.Join(strings.Fields(said), " ")))
	t.judge(validD1(), validD2(), validD6(), validP1(), validO1(), validStores())
}

// eventsAt counts the events of the trial's database in a cluster.
func (t *trial) eventsAt(c *cluster) (n int) {
	t.at(c, func(d *database) {
		t.until("events to be counted", func() (bool, error) {
			err := d.one(t.ctx, `select count(*) from posthorn.events`, nil, &n)
			return err == nil, err
		})
	})
	return n
}

// at opens the trial's database in another cluster for a moment.
func (t *trial) at(c *cluster, f func(*database)) {
	other := &database{name: t.db.name}
	other.move(c)
	t.must(other.open(t.ctx))
	defer other.pool.Close()
	f(other)
}

// refusedOverHTTP sends with the admin key, and gives the status of the answer.
func (t *trial) refusedOverHTTP(g *gateway, conv string) (status int) {
	ctx, cancel := t.deadline("an answer over HTTP")
	defer cancel()
	var answer struct{}
	err := g.ask(ctx, http.MethodPost, "/conversations/"+conv+"/events", map[string]string{"sender": "ana", "body": "by the application"}, &answer)
	if err != nil {
		_, _ = fmt.Sscanf(err.Error()[strings.Index(err.Error(), "HTTP status"):], "HTTP status %d", &status)
	}
	return status
}
