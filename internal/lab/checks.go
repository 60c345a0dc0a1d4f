package lab

import "github.com/posthorn/posthorn"

// Checks lists every check that is built.
func Checks() []Check {
	return append(sendChecks(), clusterChecks()...)
}

// sendChecks are about one message, one device, one database.
func sendChecks() []Check {
	return []Check{
		{Name: "04-rollback-takes-no-seq", Fault: rollbackFault, Invariants: []string{posthorn.P1, posthorn.D1, posthorn.D2}, run: rollbackTakesNoSeq,
			Mechanism: "numbers are taken from the log itself, under the conversation's lock",
			Must:      "after 100 transactions that were rolled back once their numbers were given: 1..head without a hole"},
		{Name: "06-crash-send.before_insert", Fault: "send.before_insert:halt:1", Invariants: []string{posthorn.D1, posthorn.D2, posthorn.D6}, run: crashBeforeInsert,
			Mechanism: "the outbox is on disk before the first attempt; nobody is answered before COMMIT",
			Must:      "exit 137, no reply, 0 rows; after the resend from the stored outbox 1 row, dup=false, outbox empty"},
		{Name: "06-crash-send.before_commit", Fault: "send.before_commit:hang:1 and kill -9; then send.before_commit:halt", Invariants: []string{posthorn.D1, posthorn.D2, posthorn.P1}, run: crashBeforeCommit,
			Mechanism: "nobody is answered before COMMIT",
			Must:      "once the backend is idle in a transaction with an id: exit 137, no reply, 0 rows, the id aborted; after the resend 1 row, dup=false, and no seq was taken"},
		{Name: "06-crash-api.after_send_commit", Fault: "api.after_send_commit:halt:1", Invariants: []string{posthorn.D1, posthorn.D2, posthorn.D6}, run: crashAfterCommit,
			Mechanism: "the duplicate is looked for in the log",
			Must:      "exit 137, no reply, 1 row; after the resend 1 row, dup=true, the first seq, outbox empty"},
		{Name: "06-lost-reply-retry", Fault: lostReplyFault, Invariants: []string{posthorn.D2}, run: lostReplyRetry,
			Mechanism: "the client sends again after its timeout; the answer says dup",
			Must:      "the first call times out after 1.5 s, the resend says dup=true, 1 row"},
		{Name: "06-push-ack-advances-cursor", Fault: "none", Invariants: []string{posthorn.D3, posthorn.D4, posthorn.O1}, run: pushAckAdvancesCursor,
			Mechanism: "acked is written after its flush has committed",
			Must:      "the stored cursor equals the message's seq after the device's ack"},
		{Name: "06-ack-monotonic-and-bounded", Fault: ackRaceFault, Invariants: []string{posthorn.D4}, run: ackMonotonicAndBounded,
			Mechanism: "the larger of two acks wins, and none passes the visible head",
			Must:      "ack 1 after 7, beside it in another gateway and later, answers 7; ack head+100 is CURSOR_AHEAD and moves nothing"},
		{Name: "06-lost-push-swept", Fault: lostPushFault, Invariants: []string{posthorn.D5, posthorn.D3, posthorn.D4}, run: lostPushSwept,
			Mechanism: "the lag set and the sweep's hints",
			Must:      "no event is pushed, one hint with why=sweep, and the device has stored and acked the message within 3 s"},
		{Name: "06-db-immediate-stop-keeps-acked", Fault: "pg_ctl -m immediate stop; then kill -9 of a backend", Invariants: []string{posthorn.D1, posthorn.D2, posthorn.D5, posthorn.D6, posthorn.P1}, params: crashParams, run: databaseStopKeepsAcked,
			Mechanism: "the boot mark; synchronous commits",
			Must:      "every acked message is there; 20 messages sent afterwards are pushed with the sweep off, although transaction ids are used again"},
		{Name: "06-receiver-crash-before-store", Fault: "client.before_store:halt in the device", Invariants: []string{posthorn.D3, posthorn.D4, posthorn.O1}, run: receiverCrashBeforeStore,
			Mechanism: "the client confirms what is on its disk",
			Must:      "after reconnecting the device has the event once and acks it; delivered never ran ahead of its store"},
		{Name: "06-receiver-crash-after-store", Fault: "client.after_store:halt in the device", Invariants: []string{posthorn.D3, posthorn.D4, posthorn.O1}, run: receiverCrashAfterStore,
			Mechanism: "the client compares the list's cursor with its own",
			Must:      "after reconnecting the device has the event once and acks it; delivered never ran ahead of its store"},
		{Name: "06-lost-ack", Fault: lostAckFault, Invariants: []string{posthorn.D3, posthorn.D4, posthorn.D5}, run: lostAck,
			Mechanism: "the client acks again after a hint",
			Must:      "hinted again within the bound, the page empty or repeated, acked again; the cursor is right"},
		{Name: "06-lost-acked", Fault: "ack.after_commit:halt; then ack.before_commit:halt", Invariants: []string{posthorn.D3, posthorn.D4, posthorn.D5}, run: lostAcked,
			Mechanism: "lag is loaded from the database at the sub",
			Must:      "exit 137; the cursor is right although nobody was told, resp. hinted again within the bound and acked again"},
		{Name: "06-retry-after-leave", Fault: "the network swallows the replies", Invariants: []string{posthorn.D2, posthorn.V1}, run: retryAfterLeave,
			Mechanism: "the duplicate is looked for before membership is judged",
			Must:      "a retried leave, and a retried send of a member removed in between, are told dup=true and the first seq"},
	}
}
