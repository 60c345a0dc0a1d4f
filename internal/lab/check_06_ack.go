package lab

import (
	"fmt"
	"time"
)

const lostAckFault = "gw.ack:drop:0:1"

// lostAck: the gateway never hears a device's ack. It takes the device for one that lags and hints; the device syncs,
// finds nothing new, and confirms again.
func lostAck(t *trial) {
	a, b := t.gateway("A", withSweep(0)), t.gateway("B", withFault(lostAckFault), withSweep(sweepEvery))
	conv := t.group(a, "ana", "bo")
	ana, bo := t.device(a, "ana", "phone"), t.device(a, "bo", "phone")
	ana.start(a.url)
	bo.start(a.url, withAckEvery(1))
	bo.upToDate(conv, 1)
	bo.quit()

	bo.start(b.url, withAckEvery(1)) // up to date, so that the first ack that B hears is the one for the message
	from := time.Now()
	sent := ana.settled(ana.send(conv, "whose ack is lost"))
	lost := t.await("the ack", func(r *Record) bool {
		return r.Who == bo.name && r.frame(Out, "ack") && r.Seq == sent.Seq && r.At.After(from)
	})
	t.hist.Add(Record{At: lost.At, Who: bo.name, What: Lost, Conv: conv, Seq: sent.Seq, Text: "its ack"})
	bo.delivered(conv, sent.Seq)

	acks := t.hist.count(func(r *Record) bool { return r.Who == bo.name && r.frame(Out, "ack") && r.At.After(from) })
	t.expectThat(acks >= 2, "acks 2 or more", fmt.Sprintf("acks %d", acks))
	t.expectHints(bo.name, from, sent.Seq)
	pages := t.hist.find(func(r *Record) bool { return r.Who == bo.name && r.frame(In, "page") && r.At.After(from) })
	page := "none"
	if len(pages) > 0 {
		page = map[bool]string{true: "empty or repeated", false: fmt.Sprint("new: ", pages[0].Events)}[repeated(pages[0].Events, sent.Seq)]
	}
	expect(t, "page", "empty or repeated", page)
	expect(t, "delivered", sent.Seq, t.stored(bo.name, conv))
	t.judge(validD1(), validD3(), validD4(), validD5(repairBound()), validO1())
}

func repeated(events []Ref, seq int64) bool {
	for _, e := range events {
		if e.Seq > seq {
			return false
		}
	}
	return true
}

// lostAcked: the gateway dies around the commit of an ack. After it, the cursor has moved though nobody was told: the
// device goes on from there. Before it, the ack is lost with its gateway: one device notices by the list when it
// reconnects; another one, which says nothing by itself, is hinted.
func lostAcked(t *trial) {
	a := t.gateway("A", withSweep(sweepEvery))
	conv := t.group(a, "ana", "bo")
	ana, bo := t.device(a, "ana", "phone"), t.device(a, "bo", "phone")
	ana.start(a.url)
	bo.start(a.url, withAckEvery(1))
	bo.upToDate(conv, 1)
	bo.quit()

	sent := t.dieAtAck(ana, bo, conv, "B", "ack.after_commit:halt")
	expect(t, "delivered after the crash", sent, t.stored(bo.name, conv))
	told := t.hist.count(func(r *Record) bool { return r.Who == bo.name && r.frame(In, "acked") && r.Delivered >= sent })
	expect(t, "told", 0, told)
	bo.start(a.url, withAckEvery(1))
	next := ana.settled(ana.send(conv, "after the crash")).Seq
	bo.upToDate(conv, next)
	expect(t, "delivered with the next message", next, t.stored(bo.name, conv))
	bo.quit()

	sent = t.dieAtAck(ana, bo, conv, "C", "ack.before_commit:halt")
	expect(t, "delivered after a crash before the commit", next, t.stored(bo.name, conv))
	bo.start(a.url)
	t.hist.Add(Record{Who: bo.name, What: Lost, Conv: conv, Seq: sent, Text: "its ack"})
	bo.delivered(conv, sent)
	expect(t, "delivered after the reconnect", sent, t.stored(bo.name, conv))
	t.silentDevice(a, ana, conv)
	t.judge(validD1(), validD3(), validD4(), validD5(repairBound()), validO1())
}

// dieAtAck has a gateway of its own die when it writes the device's ack of a new message, and gives that message's seq.
func (t *trial) dieAtAck(ana, bo *device, conv, name, fault string) int64 {
	g := t.gateway(name, withFault(fault), withSweep(0))
	bo.start(g.url, withAckEvery(1))
	sent := ana.settled(ana.send(conv, "at whose ack "+name+" dies"))
	ctx, cancel := t.deadline("gateway %s to die", name)
	defer cancel()
	code, err := g.wait(ctx)
	t.must(err)
	t.res.GatewayExit = &code
	t.hist.Add(Record{Who: name, What: Crash, Text: fault})
	expect(t, "gateway exit", 137, code)
	bo.lostConnection(t.lastStart(bo.name))
	bo.crash()
	return sent.Seq
}

// silentDevice confirms what there is and goes away. A message later it comes back, subscribes, and says nothing: that it
// lags must be noticed from what the database holds of it.
func (t *trial) silentDevice(g *gateway, ana *device, conv string) {
	p, install := t.peer(g, "bo", "tablet", 0)
	p.sub()
	_, refused := p.ack(conv, p.sync(conv, 0).Upto)
	if refused != nil {
		t.abort("the silent device's first ack was refused: %v", refused)
	}
	p.close()
	sent := ana.settled(ana.send(conv, "while the silent device is away"))
	p, _ = t.peer(g, "bo", "tablet", install)
	from := time.Now()
	entry := p.sub()
	took := p.hinted(from).At.Sub(from)
	t.expectThat(took <= repairBound(), "a silent device is hinted within "+ms(repairBound()), "a silent device is hinted within "+ms(took))
	delivered, refused := p.ack(conv, p.sync(conv, entry.Delivered).Upto)
	expect(t, "its ack is answered", fmt.Sprint(sent.Seq), answered(delivered, refused))
}
