package lab

import (
	"fmt"
	"syscall"
	"time"
)

// The three places at which a gateway can die while it sends. To the sender they look alike: no reply. Each check goes the
// same way: a message passes; the next one's gateway dies; the rows are counted; the sender's process is killed too, a new
// one finds the outbox on disk, connects to a sound gateway and sends again.

func crashBeforeInsert(t *trial) { t.crashWhileSending("send.before_insert:halt:1", 0) }
func crashAfterCommit(t *trial)  { t.crashWhileSending("api.after_send_commit:halt:1", 1) }

func (t *trial) crashWhileSending(fault string, rows int) {
	a := t.gateway("A", withFault(fault))
	conv := t.group(a, "ana", "bo")
	ana := t.device(a, "ana", "phone")
	ana.start(a.url)
	first := ana.settled(ana.send(conv, "before the crash"))
	cmid := ana.send(conv, "in the crash")
	t.gatewayDied(a)
	t.afterCrash(ana, cmid, rows)
	t.resend(ana, cmid, rows, first.Seq+1)
	t.judge(validD1(), validD2(), validD6(), validP1())
}

// crashBeforeCommit looks at the transaction before its gateway dies, which a halt leaves no time for. So the gateway hangs
// between insert and COMMIT first, and is killed when its backend has been seen there; then the same message is sent into
// a halt at the same point.
func crashBeforeCommit(t *trial) {
	a := t.gateway("A", withFault("send.before_commit:hang:1"))
	conv := t.group(a, "ana", "bo")
	ana := t.device(a, "ana", "phone")
	ana.start(a.url)
	first := ana.settled(ana.send(conv, "before the crash"))
	cmid := ana.send(conv, "in the crash")

	var xid string
	t.until("the backend to be idle in a transaction with an id", func() (bool, error) {
		err := t.db.one(t.ctx, `select coalesce(max(backend_xid::text), '') from pg_stat_activity
 where datname = current_database() and application_name = $1 and state = 'idle in transaction'`, []any{serverSession}, &xid)
		return xid != "", err
	})
	expect(t, "the transaction is", "in progress", t.xidStatus(xid))
	t.hist.Add(Record{Who: "A", What: Crash, Text: "kill -9"})
	_ = a.cmd.Process.Signal(syscall.SIGKILL)
	t.gatewayDied(a)
	t.afterCrash(ana, cmid, 0)
	expect(t, "then", "aborted", t.xidStatus(xid))

	h := t.gateway("H", withFault("send.before_commit:halt"))
	ana.begin(h.url) // sends its outbox as soon as it is online
	t.gatewayDied(h)
	t.afterCrash(ana, cmid, 0)
	t.resend(ana, cmid, 0, first.Seq+1)
	t.judge(validD1(), validD2(), validD6(), validP1())
}

func (t *trial) xidStatus(xid string) (status string) {
	t.must(t.db.one(t.ctx, `select pg_xact_status($1::text::xid8)`, []any{xid}, &status))
	return status
}

// gatewayDied waits for the end of a gateway's process, and until PostgreSQL has noticed.
func (t *trial) gatewayDied(g *gateway) {
	ctx, cancel := t.deadline("gateway %s to die", g.name)
	defer cancel()
	code, err := g.wait(ctx)
	t.must(err)
	t.hist.Add(Record{Who: "lab", What: Crash, Text: fmt.Sprintf("gateway %s is gone", g.name)})
	t.res.GatewayExit = &code
	expect(t, "gateway exit", 137, code)
	t.until("PostgreSQL to end the dead gateway's sessions", func() (bool, error) {
		n, err := t.db.sessions(t.ctx, "true")
		return n == 0, err
	})
}

// afterCrash kills the sender and counts.
func (t *trial) afterCrash(d *device, cmid string, rows int) {
	from := t.lastStart(d.name)
	d.lostConnection(from)
	d.crash()
	replies := t.hist.find(func(r *Record) bool { return r.Who == d.name && r.frame(In, "sent") && r.Cmid == cmid })
	reply := "none"
	if len(replies) > 0 {
		reply = fmt.Sprintf("sent seq %d", replies[0].Seq)
	}
	t.res.FirstReply = &reply
	expect(t, "first reply", "none", reply)
	n := t.rows(userOf(d.name), cmid)
	t.res.RowsAfterCrash = &n
	expect(t, "rows after the crash", rows, n)
}

// lostConnection waits until the device has seen its connection end: whatever the gateway had said is in the history then.
func (d *device) lostConnection(from time.Time) {
	d.t.await(d.name+" to notice the crash", func(r *Record) bool {
		return r.Who == d.name && r.What == State && r.Type == "offline" && r.At.After(from)
	})
}

// resend starts the sender anew, from what is on its disk, against a sound gateway.
func (t *trial) resend(d *device, cmid string, rowsBefore int, seq int64) {
	b := t.gateway("B")
	d.start(b.url)
	answer := d.settled(cmid)
	left := len(d.dump())
	n := t.rows(userOf(d.name), cmid)
	t.res.RowsAfterResend, t.res.ResendDup, t.res.OutboxLeft = &n, &answer.Dup, &left
	expect(t, "rows after the resend", 1, n)
	expect(t, "dup", rowsBefore == 1, answer.Dup)
	expect(t, "seq", seq, answer.Seq)
	expect(t, "outbox", 0, left)
}
