package lab

import "github.com/posthorn/posthorn"

// clusterChecks are about many gateways on one database, and about the database's own fate.
func clusterChecks() []Check {
	return []Check{
		{Name: "05-locked-conversation", Fault: "a stranger holds one conversation's row for 2 s", Invariants: []string{posthorn.D1, posthorn.D2, posthorn.P1, posthorn.O1}, run: lockedConversation,
			Mechanism: "a short lock_timeout, SKIP LOCKED and the second lane, which later sends of the conversation follow",
			Must:      "sends to other conversations keep their p99; those to it wait and come in order"},
		{Name: "07-sync-under-writes", Fault: "two gateways write while a device pages", Invariants: []string{posthorn.O1, posthorn.P1, posthorn.V1}, run: syncUnderWrites,
			Mechanism: "a page's upto is the last event that was read, never the head",
			Must:      "every visible event once, in order"},
		{Name: "07-tail-drops-one", Fault: dropFault, Invariants: []string{posthorn.D5, posthorn.D3, posthorn.O1}, run: tailDropsOne,
			Mechanism: "the audit of heads",
			Must:      "what the tail skipped is pushed within two readings of the audit, without further traffic"},
		{Name: "07-listener-cut", Fault: cutFault, Invariants: []string{posthorn.D5, posthorn.D3, posthorn.O1}, run: listenerCut,
			Mechanism: "the listener's proofs, and a full look after each LISTEN",
			Must:      "A before, B between, C after are pushed promptly, D in the silence within 20 s, and so is another listener"},
		{Name: "08-membership-edges", Fault: "joins, leaves and removals against concurrent sends", Invariants: []string{posthorn.V1, posthorn.O1, posthorn.P1, posthorn.D3}, run: membershipEdges,
			Mechanism: "the periods, judged by seq in the hub and in every page",
			Must:      "two devices are shown, and hold, exactly what the table of memberships says"},
		{Name: "09-reinstall", Fault: "hello with a higher install while the old one acks", Invariants: []string{posthorn.I1, posthorn.D4}, run: reinstall,
			Mechanism: "each flush of acks compares their install with the device's",
			Must:      "the old install's acks are STALE_INSTALL and move nothing; the new one starts with nothing"},
		{Name: "10-gateway-kill", Fault: "kill -9 of one of three gateways under load", Invariants: []string{posthorn.G1, posthorn.D1, posthorn.D2, posthorn.D6, posthorn.O1, posthorn.P1}, run: gatewayKill,
			Mechanism: "a new session sends the whole outbox again",
			Must:      "its devices go elsewhere; no answered message is lost, none is twice in a client's store"},
		{Name: "10-replaced", Fault: "one device at two gateways at once; a gateway cut off from the database", Invariants: []string{posthorn.G1, posthorn.D1, posthorn.V1}, run: replaced,
			Mechanism: "the route's generation, told by a signal; a gateway that is cut off suspends",
			Must:      "one connection lives, the other is told bye REPLACED and stays away"},
		{Name: "12-sync-wait-cancel", Fault: "the wait for the synchronous standby is cancelled", Invariants: []string{posthorn.D1, posthorn.D2}, params: pairParams, run: syncWaitCancelled,
			Mechanism: "a COMMIT that came with a warning is an unknown outcome",
			Must:      "no sent; the resend finds out when the standby has it"},
		{Name: "12-primary-failover", Fault: "kill -9 of the primary, its synchronous standby is promoted", Invariants: []string{posthorn.D6, posthorn.D1, posthorn.D2, posthorn.O1, posthorn.P1}, params: pairParams, run: primaryFailover,
			Mechanism: "commits wait for the synchronous standby",
			Must:      "every answered message is on the new primary, gateways reconnect by themselves, sends go on"},
		{Name: "12-split-brain", Fault: "the old primary comes back read-write, and an address leads to it", Invariants: []string{posthorn.E1, posthorn.D1, posthorn.D2, posthorn.D6}, params: pairParams, run: splitBrain,
			Mechanism: "the highest timeline seen, which a lower one is held to",
			Must:      "refused and alarmed: UNAVAILABLE, not ready, and no event is written there"},
		{Name: "12-async-failover-epoch", Fault: "an asynchronous standby that lost its tail is promoted", Invariants: rewindInvariants, params: pairParams, run: asyncFailover,
			Mechanism: "gateways vouch for a new timeline by what they remember; clients offer again what they had sent",
			Must:      mustRewind},
		{Name: "12-restore", Fault: "a dump is restored into a new cluster, before new gateways", Invariants: rewindInvariants, params: pairParams, run: restoreElsewhere,
			Mechanism: "the system identifier",
			Must:      mustRewind},
		{Name: "12-restore-same-cluster", Fault: "a dump is restored in place", Invariants: rewindInvariants, params: pairParams, run: restoreInPlace,
			Mechanism: "the remembered (head, mid) of each conversation",
			Must:      mustRewind},
		{Name: "12-restore-twice", Fault: "the same dump is restored twice", Invariants: rewindInvariants, params: pairParams, run: restoreTwice,
			Mechanism: "a new epoch takes in the database's time and what anybody has seen",
			Must:      mustRewind + "; the two epochs differ"},
		{Name: "12-disk-snapshot", Fault: "the data folder is rolled back to a copy", Invariants: rewindInvariants, params: pairParams, run: diskSnapshot,
			Mechanism: "the remembered batches and heads; clients hold answers back until their message has its new number",
			Must:      mustRewind},
	}
}

var rewindInvariants = []string{posthorn.E1, posthorn.P1, posthorn.D2, posthorn.D4, posthorn.O1}

const mustRewind = "epoch changes; clients cut back their logs, keep their outboxes, offer again what was lost, and end equal to the server; no epoch means two histories, no answer hits another message"
