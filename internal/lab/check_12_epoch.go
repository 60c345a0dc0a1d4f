package lab

// The ways in which a database comes to know less than it has said. The gateways live on, but where the check says that
// they do not; the clients' stores are what is left of the lost history.

// asyncFailover: the standby that is promoted had been out of reach for a while, and nobody had waited for it.
func asyncFailover(t *trial) {
	old := t.db.c
	s, between := t.standby(old)
	w := t.rewinding()
	t.caughtUp(old)
	between.freeze()
	t.hist.Add(Record{Who: "postgres", What: Note, Text: "the standby is out of reach"})
	w.lose()
	t.must(old.Kill(t.ctx))
	between.cut()
	w.away()
	t.rewound("the standby that lacks the tail takes over")
	t.promote(s)
	w.lead(s)
	w.healed()
	w.judge()
}

// caughtUp waits until the standby has everything that is there now.
func (t *trial) caughtUp(primary *cluster) {
	var at string
	t.must(t.db.one(t.ctx, `select pg_current_wal_lsn()::text`, nil, &at))
	t.until("the standby to have caught up", func() (done bool, err error) {
		err = t.db.one(t.ctx, `select exists (select 1 from pg_stat_replication where replay_lsn >= $1::pg_lsn)`, []any{at}, &done)
		return done, err
	})
}

// restoreElsewhere: a dump is restored into a new cluster, before gateways that have never seen the old one. All that they
// can know it by is its name.
func restoreElsewhere(t *trial) {
	w := t.rewinding()
	file := t.dump()
	w.lose()
	c := t.emptyCluster()
	for _, g := range w.gateways {
		g.kill()
	}
	w.away()
	t.halt(t.db.c)
	t.restore(c, file)
	for i, name := range []string{"C", "D"} {
		w.cables[i].lead(c)
		w.gateways[i] = t.gateway(name, w.settings(w.cables[i])...)
	}
	w.ana.crash()
	w.bo.crash()
	w.ana.start(w.gateways[0].url, withTimeout(replyTimeout))
	w.bo.start(w.gateways[1].url, withTimeout(replyTimeout))
	w.healed()
	w.judge()
}

// restoreInPlace: the dump replaces the database that it was taken from, under the eyes of the gateways.
func restoreInPlace(t *trial) {
	w := t.rewinding()
	file := t.dump()
	w.lose()
	t.restore(t.db.c, file)
	w.healed()
	w.judge()
}

// restoreTwice: the same dump comes back again after people have gone on, and the second time no gateway is there that
// remembers anything. The devices do, and the second epoch is none of those before.
func restoreTwice(t *trial) {
	w := t.rewinding()
	file := t.dump()
	w.lose()
	t.restore(t.db.c, file)
	w.healed()
	w.cy.quit()
	w.lose()
	w.forget()
	t.restore(t.db.c, file)
	w.anew("C", "D")
	w.healed()
	w.judge()
}

// diskSnapshot: the whole cluster, its own marks included, goes back to what a copy of its disk says.
func diskSnapshot(t *trial) {
	w := t.rewinding()
	dir := t.snapshot(t.db.c)
	w.lose()
	t.rollBack(t.db.c, dir, w.away)
	w.healed()
	w.judge()
}
