package lab

import (
	"net/http"

	"github.com/posthorn/posthorn"
)

// retryAfterLeave: the network swallows the answer to a leave, and the answer to a message whose sender is then removed.
// Both are asked again by somebody who is no member any more, and get the first answer.
func retryAfterLeave(t *trial) {
	a := t.gateway("A")
	conv := t.group(a, "ana", "bo", "cy")
	ana, bo, cy := t.device(a, "ana", "phone"), t.device(a, "bo", "phone"), t.device(a, "cy", "phone")
	ana.start(a.url)

	k := t.link(a)
	bo.start(k.url)
	bo.upToDate(conv, 1)
	k.mute()
	left := bo.leave(conv)
	first := t.committed("bo", left)
	k.cut()
	answer := bo.settled(left)
	expect(t, "the retried leave's dup", true, answer.Dup)
	expect(t, "its seq", first, answer.Seq)
	expect(t, "rows", 1, t.rows("bo", left))

	m := t.link(a)
	cy.start(m.url)
	cy.upToDate(conv, first)
	m.mute()
	cmid := cy.send(conv, "whose sender is removed")
	first = t.committed("cy", cmid)
	ctx, cancel := t.deadline("cy to be removed")
	defer cancel()
	var removed struct{ Seq int64 }
	t.must(a.ask(ctx, http.MethodDelete, "/conversations/"+conv+"/members/cy", nil, &removed))
	later := ana.settled(ana.send(conv, "after the removal"))
	m.cut()
	answer = cy.settled(cmid)
	refused := cy.settled(cy.send(conv, "not a member any more"))

	n, outbox := t.rows("cy", cmid), len(bo.dump())
	t.res.RowsAfterResend, t.res.ResendDup, t.res.OutboxLeft = &n, &answer.Dup, &outbox
	expect(t, "the retried send's dup", true, answer.Dup)
	expect(t, "its seq", first, answer.Seq)
	expect(t, "rows", 1, n)
	expect(t, "a new send is", string(posthorn.CodeNotMember), refused.Code)
	expect(t, "outbox", 0, outbox)
	expect(t, "the removed one is pushed what comes later", 0, t.pushed(cy.name, conv, later.Seq))
	t.judge(validD1(), validD2(), validP1(), validV1(), validO1())
}

// committed waits until a request's event is in the table, whatever its sender was told, and gives its seq.
func (t *trial) committed(sender, cmid string) (seq int64) {
	t.until("the request to be carried out", func() (bool, error) {
		tables, err := t.db.tables(t.ctx)
		if err != nil {
			return false, err
		}
		rows := tables.keyed(sender, cmid)
		if len(rows) == 0 {
			return false, nil
		}
		seq = rows[0].Seq
		return true, nil
	})
	return seq
}
