package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// epochLease is the gateways' lease in checks of the epoch: it bounds how long a new timeline is judged.
const epochLease = 2 * time.Second

// rewinding is a conversation whose history is going to be rewound: ana and bo behind a gateway each, and cy, who goes away
// with something that will be lost.
type rewinding struct {
	t           *trial
	cables      []*cable
	gateways    []*gateway
	ana, bo, cy *device
	conv        string
	kept, lost  []string          // cmids
	replies     map[string]string // cmid of a reply → that of the message that it answers
	epochs      []int64           // as the table said
}

// rewinding starts everything, and sends what no rewind will reach.
func (t *trial) rewinding() *rewinding {
	w := &rewinding{t: t, replies: map[string]string{}}
	for _, name := range []string{"A", "B"} {
		c := t.cable(t.db.c)
		w.cables = append(w.cables, c)
		w.gateways = append(w.gateways, t.gateway(name, w.settings(c)...))
	}
	a, b := w.gateways[0], w.gateways[1]
	w.conv = t.group(a, "ana", "bo", "cy")
	w.ana, w.bo, w.cy = t.device(a, "ana", "phone"), t.device(b, "bo", "phone"), t.device(a, "cy", "phone")
	w.ana.start(a.url, withTimeout(replyTimeout))
	w.bo.start(b.url, withTimeout(replyTimeout))
	w.kept = append(w.ana.queue(w.conv, 3), w.bo.queue(w.conv, 3)...)
	w.ana.allSettled(w.kept[:3])
	w.bo.allSettled(w.kept[3:])
	w.epochs = append(w.epochs, t.tables().Epoch)
	return w
}

func (w *rewinding) settings(c *cable) []setting {
	return []setting{withSweep(sweepEvery), by(w.t, c), withFlags("--lease", epochLease.String())}
}

// lose sends what the rewind takes back. cy's message comes first, and cy comes back last: so ana's has another number then,
// and the one that it had is another message's.
func (w *rewinding) lose() {
	t := w.t
	w.cy.start(w.gateways[0].url, withTimeout(replyTimeout))
	early := w.cy.send(w.conv, "of one who goes away")
	w.cy.settled(early)
	w.cy.quit()
	answered := w.ana.send(w.conv, "which is answered")
	target := w.ana.settled(answered)
	w.bo.holds(w.conv, target.Seq)
	reply := w.bo.reply(w.conv, "an answer", target.Seq)
	last := w.bo.settled(reply).Seq
	more := w.ana.queue(w.conv, 3)
	last = max(last, w.ana.allSettled(more))
	w.ana.upToDate(w.conv, last)
	w.bo.upToDate(w.conv, last)
	w.replies[reply] = answered
	w.lost = append(append(w.lost, early, answered, reply), more...)
	t.hist.Add(Record{Who: "lab", What: Note, Text: fmt.Sprintf("%d messages are there that will be lost", len(w.lost))})
}

// away queues, while the database is gone, what was never sent: an answer to a message that will be lost too.
func (w *rewinding) away() {
	for _, answered := range w.replies {
		seq := w.ana.settled(answered).Seq
		reply := w.bo.reply(w.conv, "an answer that waits in the outbox", seq)
		w.replies[reply] = answered
		w.lost = append(w.lost, reply)
		return
	}
}

// lead has both gateways reach another cluster.
func (w *rewinding) lead(c *cluster) {
	for _, k := range w.cables {
		k.lead(c)
	}
}

// forget ends both gateways together with what they have written down. The devices stay away until anew.
func (w *rewinding) forget() {
	t := w.t
	w.ana.quit()
	w.bo.quit()
	for _, g := range w.gateways {
		t.must(g.cmd.Process.Signal(syscall.SIGKILL))
		ctx, cancel := t.deadline("gateway %s to die", g.name)
		_, err := g.wait(ctx)
		cancel()
		t.must(err)
		t.must(os.RemoveAll(filepath.Join(t.dir, "data-"+g.name)))
	}
}

// anew starts gateways of other names, which know nothing, and the devices.
func (w *rewinding) anew(names ...string) {
	w.gateways = nil
	for i, name := range names {
		w.gateways = append(w.gateways, w.t.gateway(name, w.settings(w.cables[i])...))
	}
	w.ana.start(w.gateways[0].url, withTimeout(replyTimeout))
	w.bo.start(w.gateways[1].url, withTimeout(replyTimeout))
}

// healed waits until everything that was lost is back, from ana and bo first, then from cy, and holds on to the epoch.
func (w *rewinding) healed() {
	t := w.t
	w.until("what ana and bo had sent to be back", func(user string) bool { return user != "cy" })
	w.cy.start(w.gateways[0].url, withTimeout(replyTimeout))
	w.until("what cy had sent to be back", func(string) bool { return true })
	epoch := t.tables().Epoch
	for i, before := range w.epochs {
		t.expectThat(epoch != before, fmt.Sprintf("epoch %d is new", len(w.epochs)), fmt.Sprintf("epoch %d is %s", len(w.epochs),
			map[bool]string{true: "new", false: fmt.Sprintf("that of history %d", i)}[epoch != before]))
	}
	w.epochs = append(w.epochs, epoch)
}

// until waits for the rows of those lost messages whose sender is asked for.
func (w *rewinding) until(what string, asks func(user string) bool) {
	who := map[string]string{}
	for _, r := range w.t.hist.find(func(r *Record) bool { return r.What == Queued }) {
		who[r.Cmid] = r.user()
	}
	w.t.until(what, func() (bool, error) {
		tables, err := w.t.db.tables(w.t.ctx)
		if err != nil {
			return false, err
		}
		for _, cmid := range w.lost {
			if asks(who[cmid]) && len(tables.keyed(who[cmid], cmid)) == 0 {
				return false, nil
			}
		}
		return true, nil
	})
}

// judge sends a last message, compares the stores, and holds everything to E1.
func (w *rewinding) judge() {
	t := w.t
	t.finish(w.conv, w.ana, w.ana, w.bo, w.cy)
	tables := t.tables()
	seqOf := map[string]int64{}
	for _, r := range tables.Rows {
		seqOf[r.Cmid] = r.Seq
	}
	wrong, moved := 0, 0
	for reply, answered := range w.replies {
		row := tables.row(w.conv, seqOf[reply])
		if row == nil || row.Reply != seqOf[answered] {
			wrong++
		}
		if first := t.hist.find(func(r *Record) bool { return r.What == Settled && r.Cmid == answered }); first[0].Seq != seqOf[answered] {
			moved++
		}
	}
	expect(t, "answers to another message", 0, wrong)
	expect(t, "messages that were answered and have another number now", len(w.replies), moved)
	t.judge(validE1(), validP1(), validD2(), validD4(), validO1())
}
