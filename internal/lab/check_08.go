package lab

import (
	"net/http"
)

// edges is how often somebody comes in and goes out in one round.
const edges = 40

// membershipEdges: while another one writes without a pause through a second gateway, somebody comes in and goes out: they
// leave, they are removed by the owner, or by the application. Their two devices, one behind each gateway, are shown what
// the table of memberships says, no event more, and hold no event less.
func membershipEdges(t *trial) {
	a, b := t.gateway("A", withSweep(sweepEvery)), t.gateway("B", withSweep(sweepEvery))
	conv := t.group(a, "ana", "bo", "cy")
	ana, _ := t.peer(a, "ana", "phone", 0)
	bo, _ := t.peer(b, "bo", "phone", 0)
	phone, tablet := t.device(a, "cy", "phone"), t.device(b, "cy", "tablet")
	phone.start(a.url)
	tablet.start(b.url)
	phone.upToDate(conv, 1)
	tablet.upToDate(conv, 1)
	ana.mustChange("remove", conv, "cy")

	writes := t.beside(func(stop <-chan struct{}) {
		for !over(stop) {
			bo.mustSend(conv)
		}
	})
	for range edges {
		t.betweenWrites(bo.name)
		in := ana.mustChange("add", conv, "cy").Seq
		t.betweenWrites(bo.name)
		switch t.rng.IntN(3) {
		case 0:
			ana.mustChange("remove", conv, "cy")
		case 1:
			t.removed(b, conv, "cy")
		default:
			phone.holds(conv, in) // or else it does not know that it could leave
			phone.settled(phone.leave(conv))
		}
	}
	writes.end()
	writes.wait()
	ana.mustChange("add", conv, "cy")
	last := bo.mustSend(conv).Seq
	for _, d := range []*device{phone, tablet} {
		d.upToDate(conv, last)
		d.dump()
	}
	expect(t, "stays", edges+2, t.stays("cy", conv))
	t.judge(validV1(), validP1(), validO1(), validD3(), validD4(), validStores())
}

// betweenWrites waits for none or a few of somebody's messages, so that an edge falls anywhere among them.
func (t *trial) betweenWrites(who string) {
	n := t.rng.IntN(4)
	sent := func(r *Record) bool { return r.Who == who && r.frame(In, "sent") }
	if n > 0 {
		t.awaitN("some more messages of "+who, t.hist.count(sent)+n, sent)
	}
}

// removed has the application remove somebody.
func (t *trial) removed(g *gateway, conv, user string) int64 {
	ctx, cancel := t.deadline("%s to be removed", user)
	defer cancel()
	var removed struct{ Seq int64 }
	t.must(g.ask(ctx, http.MethodDelete, "/conversations/"+conv+"/members/"+user, nil, &removed))
	return removed.Seq
}

func (t *trial) stays(user, conv string) (n int) {
	for _, s := range t.tables().Stays {
		if s.User == user && s.Conv == conv {
			n++
		}
	}
	return n
}
