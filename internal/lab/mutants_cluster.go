package lab

// clusterMutants are about many gateways on one database, and about the database's own fate.
func clusterMutants() []Mutant {
	return []Mutant{
		{Check: "05-locked-conversation", Name: "patient-batch", File: "internal/store/batch.go",
			Old:   "s.sendBatch(w, batch, s.cfg.Limits.LockTimeout, true)",
			New:   "s.sendBatch(w, batch, 30*time.Second, true)",
			Shows: "p99 of the others", Why: "the batch waits for a stranger's lock, and every send with it"},
		{Check: "05-locked-conversation", Name: "lane-not-followed", File: "internal/store/batch.go",
			Old:   "	if l := q.lanes[op.Conv]; l != nil {",
			New:   "	if l := q.lanes[op.Conv]; l != nil && op.Kind != posthorn.KindMsg {",
			Shows: "bo/phone@A to be answered", Why: "what is sent later does not queue behind what waits for the lock"},
		{Check: "07-sync-under-writes", Name: "upto-is-head", File: "internal/store/page.go",
			Old: "	p.Upto = at\n", New: "	p.Upto = x.Visible\n",
			Shows: "O1 broken", Why: "a page moves the cursor to the head, past what it had no room for"},
		{Check: "08-membership-edges", Name: "leave-not-followed", File: "internal/hub/fanout.go",
			Old: "		if it.ev.Kind == posthorn.KindLeave {", New: "		if it.ev.Kind == posthorn.KindLeave && false {",
			Shows: "V1 broken", Why: "the hub does not end a period at the leave event"},
		{Check: "08-membership-edges", Name: "pages-from-the-start", File: "internal/store/view.go",
			Old: "		from, to := min(p.From, p.SeesFrom), p.To", New: "		from, to := int64(1), p.To",
			Shows: "V1 broken", Why: "a page shows what lies before the join"},
		{Check: "09-reinstall", Name: "install-not-compared", File: devicesSQL,
			Old: "when a.stale then 'STALE_INSTALL' when a.stranger", New: "when a.stranger",
			Shows: "I1 broken", Why: "an ack is not asked for its install"},
		{Check: "10-gateway-kill", Name: "outbox-not-sent-again", File: "client/session.go",
			Old: "	s.takeItems(true)", New: "	s.takeItems(false)",
			Shows: "to be answered for", Why: "a new session sends what is new and forgets what the dead gateway has swallowed"},
		{Check: "12-sync-wait-cancel", Name: "warning-not-heard", File: writerGo,
			Old: "	if err == nil && w.warned.Load() {", New: "	if err == nil && w.warned.Load() && false {",
			Shows: "told sent without the standby 1", Why: "COMMIT's success is believed, although it came with a warning"},
		{Check: "12-primary-failover", Name: "local-commit", File: writerGo,
			Old:   "	b.Queue(\"begin\")",
			New:   "	b.Queue(\"begin\")\n	b.Queue(\"set local synchronous_commit = local\")",
			Shows: "D6 broken", Why: "the sender is answered before the standby has it"},
	}
}
