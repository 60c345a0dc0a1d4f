package lab

import (
	"fmt"

	"github.com/posthorn/posthorn"
)

// pushAckAdvancesCursor: nothing is broken. The receiver is pushed the message, stores it, confirms it, and the stored
// cursor says so.
func pushAckAdvancesCursor(t *trial) {
	a := t.gateway("A", withSweep(0))
	conv := t.group(a, "ana", "bo")
	ana, bo := t.device(a, "ana", "phone"), t.device(a, "bo", "phone")
	ana.start(a.url)
	bo.start(a.url)
	bo.upToDate(conv, 1)
	sent := ana.settled(ana.send(conv, "hello"))
	bo.holds(conv, sent.Seq)
	bo.delivered(conv, sent.Seq)
	pushed := t.pushed(bo.name, conv, sent.Seq)
	expect(t, "pushed", 1, pushed)
	expect(t, "delivered", sent.Seq, t.stored(bo.name, conv))
	t.judge(validD1(), validD3(), validD4(), validO1(), validV1())
}

// upToDate waits until the device has caught up and the server knows it.
func (d *device) upToDate(conv string, seq int64) {
	d.holds(conv, seq)
	d.delivered(conv, seq)
}

// delivered waits until the device's stored cursor is at seq or above.
func (d *device) delivered(conv string, seq int64) {
	d.t.until(fmt.Sprintf("the cursor of %s to reach %d", d.name, seq), func() (bool, error) {
		tables, err := d.t.db.tables(d.t.ctx)
		if err != nil {
			return false, err
		}
		p := tables.place(d.name, conv)
		return p != nil && p.Delivery >= seq, nil
	})
}

// stored is a device's cursor in the table, or -1.
func (t *trial) stored(device, conv string) int64 {
	if p := t.tables().place(device, conv); p != nil {
		return p.Delivery
	}
	return -1
}

// pushed counts the event frames of one seq that came to a client.
func (t *trial) pushed(who, conv string, seq int64) int {
	return t.hist.count(func(r *Record) bool { return r.Who == who && r.frame(In, "event") && r.Conv == conv && r.Seq == seq })
}

const ackRaceFault = "ack.before_commit:delay=1500:0:1"

// ackMonotonicAndBounded: two gateways write the cursor of one device. While the first one's 7 is written and not yet
// committed, the device has moved on to the second one and says 1 there; afterwards 1 again, and numbers above the head.
func ackMonotonicAndBounded(t *trial) {
	a, b := t.gateway("A", withFault(ackRaceFault), withSweep(0)), t.gateway("B", withSweep(0))
	conv := t.group(a, "ana", "bo")
	ana, _ := t.peer(a, "ana", "phone", 0)
	for range 6 {
		ana.mustSend(conv)
	}
	bo, install := t.peer(a, "bo", "phone", 0)
	left := make(chan any, 1)
	go func() {
		defer func() { left <- recover() }() // the answer may be lost with the connection, which the device has left
		_, _ = bo.ack(conv, 7)
	}()
	t.untilSessions("the flush with ack 7 to stand before its commit", "state = 'idle in transaction' and backend_xid is not null", 1)
	twin, _ := t.peer(b, "bo", "phone", install)
	low, refused := twin.ack(conv, 1)
	<-left
	expect(t, "ack 1 beside 7", "7", answered(low, refused))
	low, refused = twin.ack(conv, 1)
	expect(t, "ack 1 later", "7", answered(low, refused))
	low, refused = twin.ack(conv, 107)
	expect(t, "ack 107", "CURSOR_AHEAD seq=107 head=7", answered(low, refused))
	low, refused = twin.ack(conv, 8)
	expect(t, "ack 8", "CURSOR_AHEAD seq=8 head=7", answered(low, refused))
	expect(t, "delivered", 7, t.stored("bo/phone", conv))
	t.judge(validD4())
}

func answered(delivered int64, refused *posthorn.Error) string {
	if refused != nil {
		return fmt.Sprintf("%s %s", refused.Code, refused.Msg)
	}
	return fmt.Sprint(delivered)
}
