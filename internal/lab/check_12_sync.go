package lab

// syncWaitCancelled: COMMIT waits for a standby that cannot be reached, and an operator cancels the wait. PostgreSQL then
// says that it has committed, with a warning: the standby may never get it. So nobody is told; the sender asks again, and
// is answered when the standby has it.
func syncWaitCancelled(t *trial) {
	s, net := t.standby(t.db.c)
	t.waitForStandby()
	a := t.gateway("A", withSweep(0))
	conv := t.group(a, "ana", "bo")
	ana := t.device(a, "ana", "phone")
	ana.start(a.url, withTimeout(replyTimeout))
	ana.settled(ana.send(conv, "which the standby gets"))

	net.freeze()
	t.hist.Add(Record{Who: "postgres", What: Note, Text: "the standby is out of reach"})
	cmid := ana.send(conv, "whose wait is cancelled")
	cancelled := 0
	t.until("COMMIT to wait for the standby, and to be cancelled", func() (bool, error) {
		err := t.db.one(t.ctx, `select count(*) filter (where pg_cancel_backend(pid)) from pg_stat_activity
 where datname = current_database() and application_name = $1 and wait_event = 'SyncRep' and query ilike '%commit%'`, []any{serverSession}, &cancelled)
		return cancelled > 0, err
	})
	t.hist.Add(Record{Who: "postgres", What: Note, Text: "the wait is cancelled"})
	// Committed here, and visible to everybody; the sender has not heard of it when it asks again.
	t.committed("ana", cmid)
	of := func(dir, typ string) int {
		return t.hist.count(func(r *Record) bool { return r.Who == ana.name && r.frame(dir, typ) && r.Cmid == cmid })
	}
	t.until(ana.name+" to send again, or to be answered", func() (bool, error) { return of(Out, "send") > 1 || of(In, "sent") > 0, nil })
	told := of(In, "sent")
	expect(t, "told sent without the standby", 0, told)
	first := "timeout"
	if told > 0 {
		first = "sent"
	}
	t.res.FirstReply = &first
	before := t.rowsAt(s, cmid)
	expect(t, "rows on the standby then", 0, before)
	net.heal()
	answer := ana.settled(cmid)
	n, left := t.rows("ana", cmid), len(ana.dump())
	t.res.RowsAfterResend, t.res.ResendDup, t.res.OutboxLeft = &n, &answer.Dup, &left
	expect(t, "dup", true, answer.Dup)
	expect(t, "rows", 1, n)
	expect(t, "rows on the standby", 1, t.rowsAt(s, cmid))
	expect(t, "outbox", 0, left)
	t.judge(validD1(), validD2(), validP1())
}

// rowsAt counts the events of a cmid in another cluster's copy of the database.
func (t *trial) rowsAt(c *cluster, cmid string) (n int) {
	t.at(c, func(d *database) {
		t.until("the other cluster to count "+cmid, func() (bool, error) {
			err := d.one(t.ctx, `select count(*) from posthorn.events where cmid = $1`, []any{cmid}, &n)
			return err == nil, err
		})
	})
	return n
}
