package lab

import "fmt"

// The receiver dies between the push and its ack. Whatever it had not stored it gets again, whatever it had stored it
// confirms, and it has the event once. The sweep is off: the reconnect alone repairs.

func receiverCrashBeforeStore(t *trial) { t.receiverCrash("client.before_store:halt", false) }
func receiverCrashAfterStore(t *trial)  { t.receiverCrash("client.after_store:halt", true) }

func (t *trial) receiverCrash(fault string, stored bool) {
	a := t.gateway("A", withSweep(0))
	conv := t.group(a, "ana", "bo")
	ana, bo := t.device(a, "ana", "phone"), t.device(a, "bo", "phone")
	ana.start(a.url)
	bo.start(a.url)
	bo.upToDate(conv, 1)
	bo.quit()

	bo.start(a.url, withDeviceFault(fault)) // it has nothing to catch up with, so the next event is the first that it stores
	sent := ana.settled(ana.send(conv, "in the crash"))
	ctx, cancel := t.deadline("%s to die", bo.name)
	defer cancel()
	code, err := bo.wait(ctx)
	t.must(err)
	t.hist.Add(Record{Who: bo.name, What: Crash, Text: fault})
	expect(t, "the device's exit", 137, code)
	expect(t, "delivered after the crash", 1, t.stored(bo.name, conv))

	from := len(t.hist.Records())
	bo.start(a.url)
	bo.upToDate(conv, sent.Seq)
	bo.dump()
	after := t.hist.Records()[from:]
	held, applied := 0, 0
	begun := false // the first dump is over: what is held later came from the server
	for _, r := range after {
		switch {
		case r.Who != bo.name:
		case r.What == Note && r.Text == dumped:
			begun = true
		case r.What == Held && r.Seq == sent.Seq && !begun:
			held++
		case r.What == Applied && r.Seq == sent.Seq:
			applied++
		}
	}
	expect(t, "on its disk after the crash", stored, held > 0)
	expect(t, "applied after the crash", map[bool]int{true: 0, false: 1}[stored], applied)
	expect(t, "events in its log", fmt.Sprint([]int64{1, sent.Seq}), fmt.Sprint(t.log(bo.name, conv)))
	expect(t, "delivered", sent.Seq, t.stored(bo.name, conv))
	t.judge(validD1(), validD3(), validD4(), validO1())
}

// log is what the device held when it was asked last.
func (t *trial) log(who, conv string) (seqs []int64) {
	for _, r := range t.hist.find(func(r *Record) bool { return r.Who == who && r.Conv == conv && r.What == Held }) {
		if len(seqs) > 0 && r.Seq <= seqs[len(seqs)-1] {
			seqs = nil // another dump
		}
		seqs = append(seqs, r.Seq)
	}
	return seqs
}
