package lab

import "time"

const (
	lostReplyFault = "gw.reply.send:drop:0:1"
	replyTimeout   = 1500 * time.Millisecond
)

// lostReplyRetry: the gateway's answer to a send is lost. The client waits, sends the same cmid again and is told that it
// had been carried out.
func lostReplyRetry(t *trial) {
	a := t.gateway("A", withFault(lostReplyFault))
	conv := t.group(a, "ana", "bo")
	ana := t.device(a, "ana", "phone")
	ana.start(a.url, withTimeout(replyTimeout))
	cmid := ana.send(conv, "whose answer is lost")
	answer := ana.settled(cmid)

	sends := t.hist.find(func(r *Record) bool { return r.Who == ana.name && r.frame(Out, "send") && r.Cmid == cmid })
	replies := t.hist.find(func(r *Record) bool {
		return r.Who == ana.name && r.What == In && r.Cmid == cmid && (r.Type == "sent" || r.Type == "error")
	})
	expect(t, "sends", 2, len(sends))
	expect(t, "replies", 1, len(replies))
	first := "timeout"
	waited := time.Duration(0)
	if len(sends) > 1 {
		waited = sends[1].At.Sub(sends[0].At)
		if len(replies) > 0 && replies[0].At.Before(sends[1].At) {
			first = replies[0].Type
		}
	}
	t.res.FirstReply = &first
	expect(t, "first call", "timeout", first)
	// The client's clock begins when the request is made, a moment before the frame is seen here.
	t.expectThat(waited >= replyTimeout-100*time.Millisecond, "resend after about 1500 ms or more", "resend after "+ms(waited))
	n, left := t.rows("ana", cmid), len(ana.dump())
	t.res.RowsAfterResend, t.res.ResendDup, t.res.OutboxLeft = &n, &answer.Dup, &left
	expect(t, "dup", true, answer.Dup)
	expect(t, "rows", 1, n)
	expect(t, "outbox", 0, left)
	t.judge(validD1(), validD2(), validP1())
}
