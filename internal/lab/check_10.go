package lab

import (
	"fmt"
	"syscall"
)

const loadEach = 25 // messages of each device

// gatewayKill: three gateways serve six devices through one address, and one of them is killed while everybody sends. Who
// was connected there goes elsewhere, nothing that was answered is lost, and nobody holds anything twice.
func gatewayKill(t *trial) {
	all := []*gateway{t.gateway("A", withSweep(sweepEvery)), t.gateway("B", withSweep(sweepEvery)), t.gateway("C", withSweep(sweepEvery))}
	conv := t.group(all[0], "ana", "bo", "cy")
	front := t.balancer(all...)
	var devices []*device
	for i := range 6 {
		d := t.device(all[0], []string{"ana", "bo", "cy"}[i%3], []string{"phone", "tablet"}[i/3])
		d.start(front.url, withTimeout(replyTimeout))
		d.upToDate(conv, 1)
		devices = append(devices, d)
	}
	var names []string
	queued := map[*device][]string{}
	for _, d := range devices {
		queued[d] = d.queue(conv, loadEach)
		names = append(names, d.name)
	}
	t.until("some of the messages to be answered", func() (bool, error) { return t.settledSoFar(names...) >= 20+t.rng.IntN(40), nil })
	victim := all[1]
	t.hist.Add(Record{Who: victim.name, What: Crash, Text: "kill -9"})
	_ = victim.cmd.Process.Signal(syscall.SIGKILL)
	ctx, cancel := t.deadline("gateway %s to die", victim.name)
	defer cancel()
	code, err := victim.wait(ctx)
	t.must(err)
	t.res.GatewayExit = &code
	expect(t, "gateway exit", 137, code)

	for _, d := range devices {
		d.allSettled(queued[d])
	}
	t.finish(conv, devices[0], devices...)
	rows := len(t.tables().Rows)
	expect(t, "rows", 1+len(devices)*loadEach+1, rows)
	t.res.RowsAfterResend = &rows
	crash := t.crashed()
	early := t.hist.count(func(r *Record) bool { return r.What == Settled && r.At.Before(crash) })
	t.observed = append(t.observed, fmt.Sprintf("answered before the crash %d", early))
	t.judge(validD1(), validD2(), validD3(), validD4(), validD6(), validP1(), validO1(), validG1())
}
