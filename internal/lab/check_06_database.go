package lab

import (
	"context"
	"fmt"
	"net/url"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// crashParams, together with a WAL writer that is held still (freeze.go), make a crash lose what it may lose: the WAL of
// transactions that nobody waits for stays in memory, so that their ids are handed out again.
var crashParams = map[string]string{"wal_writer_delay": "10s", "wal_buffers": "16MB", "autovacuum": "off"}

const (
	messagesInFlight = 40
	messagesAfter    = 20
	reuseTries       = 3
)

// databaseStopKeepsAcked: PostgreSQL is stopped at once while messages are on their way, beside transactions that are
// rolled back and such that do not wait for the disk. Afterwards the gateways, which live on, must not trust the
// transaction ids that they remember: 20 messages, sent through one gateway, have to be pushed by the other one without
// any help of the sweep. The same again for a single backend that is killed, where the postmaster lives on.
func databaseStopKeepsAcked(t *trial) {
	a := t.gateway("A", withSweep(0), withSender(t))
	b := t.gateway("B", withSweep(0), withFlags("--tail-poll-max", "50ms"))
	conv := t.group(a, "ana", "bo")
	ana, bo := t.device(a, "ana", "phone"), t.device(b, "bo", "phone")
	// No ack is flushed while messages are in flight: its commit would take theirs to the disk too, were they not there.
	lazy := []setting{withTimeout(time.Second), withAckEvery(1000), withAckAfter(500 * time.Millisecond)}
	ana.start(a.url, lazy...)
	bo.start(b.url, lazy...)
	ana.upToDate(conv, 1)
	bo.upToDate(conv, 1)

	t.stopInFlight(ana, bo, conv)
	pair := &pair{ana: ana, bo: bo, b: b, conv: conv}
	t.reuse("immediate stop", pair, func(w *frozen) {
		t.stopAtOnce(w)
		t.must(t.db.c.Restart(t.ctx))
	})
	t.reuse("kill -9 of one backend", pair, t.killBackend)
	t.judge(validD1(), validD2(), validD6(), validP1(), validD3(), validD4(), validO1())
}

// withSender has a gateway connect by a role of its own, which tells the two gateways' sessions apart.
func withSender(t *trial) setting {
	t.must(t.db.c.admin(t.ctx, "CREATE ROLE "+t.sender()+" LOGIN PASSWORD '"+t.key+"' IN ROLE posthorn"))
	u, err := url.Parse(t.db.url)
	t.must(err)
	u.User = url.UserPassword(t.sender(), t.key)
	return func(p *program) { p.env = append(p.env, "POSTHORN_DATABASE_URL="+u.String()) } // the last one counts
}

// sender is that role; a cluster may serve other trials too.
func (t *trial) sender() string { return "sender_" + t.db.name }

// stopInFlight stops the database in the middle of a series of messages.
func (t *trial) stopInFlight(ana, bo *device, conv string) {
	w := t.freezeWALWriter()
	noise := t.noise()
	var cmids []string
	for i := range messagesInFlight {
		cmid := t.cmid()
		ana.tell(command{Do: "send", Conv: conv, Cmid: cmid, Body: fmt.Sprint("message ", i)})
		cmids = append(cmids, cmid)
	}
	t.awaitN("some of the messages to be answered", 5+t.rng.IntN(10), func(r *Record) bool { return r.Who == ana.name && r.frame(In, "sent") && !r.Dup })
	t.stopAtOnce(w)
	noise.hush()
	t.hist.Add(Record{Who: "postgres", What: Crash, Text: "immediate stop in flight"})
	acked := t.hist.count(func(r *Record) bool { return r.Who == ana.name && r.frame(In, "sent") })
	t.must(t.db.c.Restart(t.ctx))

	rows := 0
	tables := t.tables()
	for _, r := range t.hist.find(func(r *Record) bool { return r.Who == ana.name && r.frame(In, "sent") }) {
		if row := tables.row(r.Conv, r.Seq); row != nil && row.Mid == r.Mid {
			rows++
		}
	}
	t.res.RowsAfterCrash = &rows
	t.expectThat(rows >= acked, fmt.Sprintf("acked messages %d kept", acked), fmt.Sprintf("acked messages %d kept", rows))
	var last int64
	for _, cmid := range cmids {
		last = max(last, ana.settled(cmid).Seq)
	}
	left := len(ana.dump())
	t.res.OutboxLeft = &left
	expect(t, "outbox", 0, left)
	bo.upToDate(conv, last)
	ana.delivered(conv, last)
}

// pair is a sender, and a receiver behind another gateway.
type pair struct {
	ana, bo *device
	b       *gateway // bo's
	conv    string
}

// reuse has transaction ids handed out a second time, and looks whether what they commit is pushed. The receiver's gateway
// is held still from before the crash until half of the messages are there, since those that commit before its first look
// are the ones in danger; the other half comes when it has looked. A commit of a gateway's own housekeeping may take the WAL to the disk and spoil an attempt, which
// then shows nothing and is made again.
func (t *trial) reuse(how string, p *pair, crash func(*frozen)) {
	again := false
	for range reuseTries {
		w := t.freezeWALWriter()
		remembered := t.burn()
		t.must(p.b.cmd.Process.Signal(syscall.SIGSTOP))
		crash(w)
		t.hist.Add(Record{Who: "postgres", What: Crash, Text: how})
		next := t.nextID()
		again = next+2*messagesAfter < remembered
		t.hist.Add(Record{Who: "postgres", What: Note, Text: fmt.Sprintf("next transaction id %d, before the crash %d", next, remembered)})
		from := time.Now()
		last := t.sendAfter(how, p)
		pushed := t.pushesAfter(p, from)
		if again || pushed != messagesAfter {
			expect(t, "pushed after the "+how, messagesAfter, pushed)
		}
		if pushed != messagesAfter {
			t.abort("the sweep is off, so nothing else will come")
		}
		p.bo.upToDate(p.conv, last)
		p.ana.delivered(p.conv, last)
		if again {
			break
		}
	}
	expect(t, "transaction ids used again", true, again)
}

// sendAfter sends the messages and gives the last one's seq.
func (t *trial) sendAfter(how string, p *pair) (last int64) {
	for i := range messagesAfter {
		if i == messagesAfter/2 {
			t.must(p.b.cmd.Process.Signal(syscall.SIGCONT))
			t.untilTailHasRead()
		}
		last = p.ana.settled(p.ana.send(p.conv, fmt.Sprintf("after the %s %d", how, i))).Seq
	}
	return last
}

// pushesAfter counts the events that the receiver is pushed, once all have come or nobody expects more.
func (t *trial) pushesAfter(p *pair, from time.Time) int {
	pushed := func(r *Record) bool {
		return r.Who == p.bo.name && r.frame(In, "event") && r.Conv == p.conv && r.At.After(from)
	}
	ctx, cancel := t.deadline("the messages to be pushed")
	defer cancel()
	_, _ = t.hist.await(ctx, messagesAfter, pushed) // counted below, however it ended
	return t.hist.count(pushed)
}

// stopAtOnce is `pg_ctl -m immediate stop`.
func (t *trial) stopAtOnce(w *frozen) {
	t.must(t.db.c.Signal(syscall.SIGQUIT))
	w.kill()
	t.must(t.db.c.Immediate(t.ctx)) // waits
}

// killBackend kills a session of the lab's own as kill -9 does: PostgreSQL then ends all sessions and recovers, under the
// same postmaster.
func (t *trial) killBackend(w *frozen) {
	conn, err := pgx.Connect(t.ctx, t.db.pool.Config().ConnString())
	t.must(err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.ctx)) }()
	master := t.db.c.PID()
	var before time.Time
	t.must(conn.QueryRow(t.ctx, `select clock_timestamp()`).Scan(&before))
	t.must(syscall.Kill(int(conn.PgConn().PID()), syscall.SIGKILL))
	w.kill() // held still, it would not end with the others
	// The session's end is how the crash is seen; connections are refused until the recovery is over, and then none is older.
	t.until("the killed session to end", func() (bool, error) {
		ctx, cancel := context.WithTimeout(t.ctx, time.Second)
		defer cancel()
		return conn.Ping(ctx) != nil, nil
	})
	t.until("PostgreSQL to recover", func() (fresh bool, err error) {
		err = t.db.one(t.ctx, `select bool_and(backend_start > $1) from pg_stat_activity where backend_type = 'client backend'`, []any{before}, &fresh)
		return fresh, err
	})
	expect(t, "the same postmaster", true, t.db.c.PID() == master)
}
