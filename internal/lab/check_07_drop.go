package lab

import (
	"fmt"
	"time"
)

const (
	dropFault  = "store.drain:drop:0:1"
	auditSweep = 100 * time.Millisecond
)

// auditBound: a message is in the second reading of the audit after it at the latest, and each reading comes ten sweeps
// after the last one; then there is what the sweep itself takes.
const auditBound = 2*10*auditSweep + 2*time.Second

// tailDropsOne: the receiver's gateway reads the commit of a message and forgets it. Nothing follows that would show the
// gap. The audit compares the heads and has the message pushed.
func tailDropsOne(t *trial) {
	a := t.gateway("A", withSweep(0))
	conv := t.group(a, "ana", "bo")
	b := t.gateway("B", withFault(dropFault), withSweep(auditSweep))
	ana, bo := t.device(a, "ana", "phone"), t.device(b, "bo", "phone")
	ana.start(a.url)
	bo.start(b.url)
	bo.upToDate(conv, 1)
	sent := ana.settled(ana.send(conv, "whose commit the tail drops"))
	t.hist.Add(Record{At: sent.At, Who: bo.name, What: Lost, Conv: conv, Seq: sent.Seq, Text: "its commit, in the tail"})
	bo.holds(conv, sent.Seq)
	bo.delivered(conv, sent.Seq)
	took, _ := repair(t.hist.Records(), &Record{Who: bo.name, Conv: conv, Seq: sent.Seq, At: sent.At})
	t.expectThat(took > 200*time.Millisecond, "the tail did not bring it", fmt.Sprintf("the tail did not bring it: it came after %s", ms(took)))
	expect(t, "pushed", 1, t.pushed(bo.name, conv, sent.Seq))
	expect(t, "messages in the log", 2, len(t.tables().Rows))
	t.judge(validD1(), validD3(), validD4(), validD5(auditBound), validO1())
}
