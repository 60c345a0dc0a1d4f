package lab

import "slices"

// Mutant is the product with one mechanism taken out: Old, which stands in File exactly once, is replaced by New. The check
// must fail with it, and what it observed must then say Shows, or one of several parted by "|" where it depends on who comes
// first, so that it fails for the right reason.
type Mutant struct {
	Check string
	Name  string
	File  string // from the root of the repository
	Old   string
	New   string
	Shows string
	Why   string
}

// Mutants lists what each check would not survive. They are built with `go build -overlay`, which serves embedded files
// too; the sources stay as they are.
func Mutants() []Mutant {
	return slices.Concat(sendMutants(), ackMutants(), repairMutants(), clusterMutants(), epochMutants())
}

const (
	commitGo    = "internal/store/commit.go"
	writerGo    = "internal/store/writer.go"
	drainGo     = "internal/store/drain.go"
	ackbatchGo  = "internal/store/ackbatch.go"
	functionSQL = "internal/store/migrations/002_functions.sql"
	membersSQL  = "internal/store/migrations/003_members.sql"
	devicesSQL  = "internal/store/migrations/004_devices.sql"
	gatewaysSQL = "internal/store/migrations/006_gateways.sql"
	epochGo     = "internal/store/epoch.go"
)

// sendMutants are about what a sender is told.
func sendMutants() []Mutant {
	return []Mutant{
		{Check: "04-rollback-takes-no-seq", Name: "numbers-from-a-sequence", File: functionSQL,
			Old:   "select j.*, greatest(j.last[1], j.next_seq - 1) as base,",
			New:   "select j.*, nextval('posthorn.server_keys_key_id_seq') as base,",
			Shows: "P1 broken", Why: "numbers are taken from a sequence, which no rollback gives back, instead of from the log itself"},
		{Check: "06-crash-send.before_insert", Name: "answered-on-receipt", File: commitGo,
			Old: "	if _, err := fault.Hit(fault.SendBeforeInsert); err != nil {",
			New: "	for _, op := range ops {\n" +
				"		op.Done(posthorn.Outcome{Conv: op.Conv, Seq: 3, Prev: 2, Mid: \"00000000-0000-7000-8000-000000000000\", Epoch: 1, At: time.Now()})\n" +
				"	}\n" +
				"	time.Sleep(50 * time.Millisecond) // the answers leave\n" +
				"	if _, err := fault.Hit(fault.SendBeforeInsert); err != nil {",
			Shows: "first reply sent", Why: "the sender is answered when the server has the message, not when the database has it"},
		{Check: "06-crash-send.before_insert", Name: "outbox-in-memory", File: "client/send.go",
			Old:   "		key, err = t.putItem(0, stored)",
			New:   "		key = uint64(time.Now().UnixNano())",
			Shows: "waiting for ana/phone to be answered", Why: "the outbox is not on disk before the first attempt, so it dies with the client"},
		{Check: "06-crash-send.before_commit", Name: "answered-before-commit", File: commitGo,
			Old: "			return r.Scan(&res.pid, &res.tx, &res.epoch, &res.codes, &res.seqs, &res.mids, &res.ats, &res.msgNos)",
			New: "			if err := r.Scan(&res.pid, &res.tx, &res.epoch, &res.codes, &res.seqs, &res.mids, &res.ats, &res.msgNos); err != nil {\n" +
				"				return err\n" +
				"			}\n" +
				"			for i, op := range ops {\n" +
				"				if res.codes[i] == \"\" {\n" +
				"					op.Done(posthorn.Outcome{Conv: op.Conv, Seq: res.seqs[i], Prev: res.seqs[i] - 1, Mid: res.mids[i], Epoch: res.epoch, At: res.ats[i]})\n" +
				"				}\n" +
				"			}\n" +
				"			return nil",
			Shows: "first reply sent", Why: "the sender is answered between insert and COMMIT"},
		{Check: "06-crash-api.after_send_commit", Name: "no-duplicate-lookup", File: functionSQL,
			Old:   "when f.dseq is not null then case when f.dmac = f.mac then 'DUP' else 'CMID_REUSED' end",
			New:   "when false then 'DUP'",
			Shows: "waiting for ana/phone to be answered", Why: "nobody looks whether the cmid has been there before"},
		{Check: "06-lost-reply-retry", Name: "no-resend", File: "client/ask.go",
			Old:   "	r.timeout = s.agenda.add(s.c.cfg.RequestTimeout, func() { s.askAgain(r) })",
			New:   "	r.timeout = s.agenda.add(1000*s.c.cfg.RequestTimeout, func() { s.askAgain(r) })",
			Shows: "waiting for ana/phone to be answered", Why: "the client does not send again after its timeout"},
		{Check: "06-lost-reply-retry", Name: "duplicate-called-new", File: commitGo,
			Old: "			out.Dup = true", New: "			out.Dup = false",
			Shows: "dup false", Why: "the answer does not say that the message had been there before"},
		{Check: "06-retry-after-leave", Name: "membership-before-duplicate", File: functionSQL,
			Old: "                    when f.dseq is not null then case when f.dmac = f.mac then 'DUP' else 'CMID_REUSED' end\n" +
				"                    when f.sender <> '' and f.role is null then 'NOT_MEMBER'\n",
			New: "                    when f.sender <> '' and f.role is null then 'NOT_MEMBER'\n" +
				"                    when f.dseq is not null then case when f.dmac = f.mac then 'DUP' else 'CMID_REUSED' end\n",
			Shows: "the retried send's dup false", Why: "membership is judged before the duplicate is looked for: a message"},
		{Check: "06-retry-after-leave", Name: "membership-before-duplicate-leave", File: membersSQL,
			Old: "    -- Before membership is judged: a retried leave gets its first answer.\n",
			New: "    if not p_server and not exists (select 1 from posthorn.memberships m\n" +
				"         where m.conv_id = p_conv and m.user_id = p_sender and m.to_seq is null) then code := 'NOT_MEMBER'; return; end if;\n",
			Shows: "the retried leave's dup false", Why: "membership is judged before the duplicate is looked for: a leave"},
	}
}

// ackMutants are about what a device confirms.
func ackMutants() []Mutant {
	return []Mutant{
		{Check: "06-push-ack-advances-cursor", Name: "acks-not-committed", File: ackbatchGo,
			Old: "	if err = tx.Commit(ctx); err != nil {", New: "	if err = tx.Rollback(ctx); err != nil {",
			Shows: "waiting for the cursor of bo/phone", Why: "acked is written though nothing was stored"},
		{Check: "06-push-ack-advances-cursor", Name: "client-is-slow-to-ack", File: "client/ack.go",
			Old:   "		c.ackDue = s.agenda.add(s.c.cfg.AckAfter, func() {",
			New:   "		c.ackDue = s.agenda.add(1000*s.c.cfg.AckAfter, func() {",
			Shows: "waiting for the cursor of bo/phone", Why: "the client confirms by number only, so that the last messages of a burst stay unconfirmed"},
		{Check: "06-ack-monotonic-and-bounded", Name: "no-greatest", File: devicesSQL,
			Old:   "then greatest(dc.delivered_seq, excluded.delivered_seq) else",
			New:   "then excluded.delivered_seq else",
			Shows: "ack 1 beside 7 1", Why: "the later of two acks wins, not the larger one"},
		{Check: "06-ack-monotonic-and-bounded", Name: "no-bound", File: devicesSQL,
			Old:   "when a.seq > a.vhead then 'CURSOR_AHEAD' else '' end as code,",
			New:   "else '' end as code,",
			Shows: "D4 broken", Why: "a cursor may pass the head"},
		{Check: "06-receiver-crash-before-store", Name: "ack-before-store", File: "client/burst.go",
			Old: "		return effect{events: true, store: func(l *ledger) error { return l.event(f.Prev, &f.Ev, in.Raw) }}",
			New: "		s.write(&wire.Ack{Conv: f.Ev.Conv, Seq: f.Ev.Seq})\n" +
				"		return effect{events: true, store: func(l *ledger) error { return l.event(f.Prev, &f.Ev, in.Raw) }}",
			Shows: "D3 broken", Why: "the client confirms what it has received and not yet stored"},
		{Check: "06-receiver-crash-after-store", Name: "no-ack-at-reconnect", File: "client/list.go",
			Old: "	case e.Delivered < c.rec.Seq:", New: "	case e.Delivered < 0:",
			Shows: "waiting for the cursor of bo/phone", Why: "the client does not notice by the list that its last ack was lost"},
		{Check: "06-lost-ack", Name: "no-ack-after-empty-page", File: "client/sync.go",
			Old: "	case c.ackAgain:", New: "	case c.ackAgain && false:",
			Shows: "waiting for the cursor of bo/phone", Why: "the client confirms only what is new, so that a lost ack stays lost"},
	}
}

// repairMutants are about what is lost on the way, or in a crash.
func repairMutants() []Mutant {
	return []Mutant{
		{Check: "06-lost-push-swept", Name: "no-hints", File: "internal/hub/sweep.go",
			Old:   "			if h.now-e.since >= h.cfg.Limits.SweepGrace {",
			New:   "			if h.now-e.since >= 1000*h.cfg.Limits.SweepGrace {",
			Shows: "waiting for bo/phone to have stored", Why: "the sweep tells nobody"},
		{Check: "06-lost-push-swept", Name: "no-lag", File: "internal/hub/fanout.go",
			Old: "	if raise && seq > acked {", New: "	if raise && seq > acked && false {",
			Shows: "waiting for bo/phone to have stored", Why: "a push counts as delivered"},
		{Check: "06-lost-push-swept", Name: "hints-ignored", File: "client/burst.go",
			Old: "		return effect{then: func() { s.hinted(f) }}", New: "		return effect{}",
			Shows: "waiting for bo/phone to have stored", Why: "the client does not sync on a hint"},
		{Check: "06-lost-acked", Name: "lag-not-loaded", File: "internal/hub/adopt.go",
			Old:   "		c.lag[v.Conv] = lagging{head: told, acked: acked, since: h.now}",
			New:   "		_ = lagging{head: told, acked: acked, since: h.now}",
			Shows: "waiting for a hint", Why: "only what was pushed by this process counts as lag, not what the database says at the sub"},
		{Check: "06-db-immediate-stop-keeps-acked", Name: "boot-mark-not-compared", File: drainGo,
			Old: "	if s.anotherLife(look) {",
			New: "	if s.tail.last != \"\" {\n		s.guard.beat.Store(look.beat)\n		s.guard.open(look.mark, look.epoch)\n" +
				"	} else if s.anotherLife(look) {",
			Shows: "pushed after the immediate stop 1", Why: "remembered transaction ids are trusted after a crash"},
		{Check: "06-db-immediate-stop-keeps-acked", Name: "asynchronous-commit", File: writerGo,
			Old:   "	b.Queue(w.s.sql(guardSQL), steady...)\n",
			New:   "	b.Queue(w.s.sql(guardSQL), steady...)\n	b.Queue(\"set local synchronous_commit = off\")\n",
			Shows: "D6 broken", Why: "the sender is answered before the WAL is on disk"},
	}
}
