package lab

import (
	"fmt"

	"github.com/posthorn/posthorn"
)

// reinstall: a device is installed anew while the old installation goes on acking, each behind a gateway of its own. The
// old one's frames are refused from the new one's welcome on, and move nothing; the new one starts with nothing.
func reinstall(t *trial) {
	a := t.gateway("A", withSweep(0), withSender(t), withFlags("--doorbell", "poll", "--tail-poll-max", "60s"))
	b := t.gateway("B", withSweep(0))
	conv := t.group(a, "ana", "bo")
	ana, _ := t.peer(a, "ana", "phone", 0)
	for range 8 {
		ana.mustSend(conv)
	}
	old, first := t.peer(a, "bo", "phone", 0)
	old.sub()
	old.sync(conv, 0)
	refusedAs := posthorn.Code("")
	acked := func(r *Record) bool { return r.Who == old.name && r.frame(In, "acked") }
	t.quiet(t.sender()) // A looks at the log seldom now: it does not hear soon that the device has gone elsewhere
	acks := t.beside(func(stop <-chan struct{}) {
		for seq := int64(1); !over(stop); seq = seq%9 + 1 {
			if _, refused := old.ack(conv, seq); refused != nil {
				refusedAs = refused.Code
				return // it is told bye
			}
		}
	})
	t.awaitN("the old install to be acking", 3, acked)
	again, second := t.peer(b, "bo", "phone", 0)
	before := t.hist.count(acked)
	t.until("the old install to be refused, or not", func() (bool, error) {
		n := t.hist.count(func(r *Record) bool { return r.Who == old.name && r.frame(In, "error") })
		return n > 0 || t.hist.count(acked) > before+10, nil
	})
	acks.end()
	acks.wait()
	expect(t, "the new install is above the old one", true, second > first)
	expect(t, "the old install's ack is", posthorn.CodeStaleInstall, refusedAs)
	entry := again.sub()
	expect(t, "delivered to the new install at first", 0, entry.Delivered)
	got := again.sync(conv, 0)
	expect(t, "events that it is given", 9, len(got.Events))
	delivered, refused := again.ack(conv, got.Upto)
	expect(t, "its ack is answered", fmt.Sprint(got.Upto), answered(delivered, refused))
	expect(t, "delivered", 9, t.stored("bo/phone", conv))
	t.judge(validI1(), validD4())
}
