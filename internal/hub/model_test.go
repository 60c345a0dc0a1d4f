package hub

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn"
	"pgregory.net/rapid"
)

// The model drives a hub through a random script and knows, from the log alone, what every socket must be told.

// step of a script; the numbers are taken modulo whatever there is to choose from.
type step struct{ op, a, b, c int }

// stage is where a script plays. On a small one, more happens at the same place.
type stage struct {
	users   int
	devices int // device i belongs to user i%users
	convs   int
	channel int  // which of them is one
	met     bool // all devices have said hello
}

// draw makes a script of single steps; weights says how often each op comes.
func draw(t *rapid.T, weights []int) (stage, []step) {
	st := rapid.SampledFrom([]stage{
		{2, 3, 1, 1, true}, {3, 4, 1, 0, true}, {2, 2, 1, 0, true}, {3, 4, 1, 1, true}, {4, 6, 3, 2, false},
	}).Draw(t, "stage")
	var ops []int
	for op, n := range weights {
		for range n {
			ops = append(ops, op)
		}
	}
	one := rapid.Custom(func(t *rapid.T) step {
		return step{ops[evenly(t, len(ops))], evenly(t, 60), evenly(t, 60), evenly(t, 60)}
	})
	least := rapid.SampledFrom([]int{1, 40, 80, 160}).Draw(t, "least")
	return st, rapid.SliceOfN(one, least, 200).Draw(t, "script")
}

// evenly draws a number below n, all of them equally likely. rapid's own draws prefer small ones: scripts of nothing but
// hellos, in which nobody ever acks.
func evenly(t *rapid.T, n int) (x int) {
	for range 10 {
		x <<= 1
		if bit.Draw(t, "bit") {
			x++
		}
	}
	return x * n >> 10
}

var bit = rapid.Bool()

type model struct {
	*house
	stage
	strict  bool // no wait ever expires
	clients []*client
	byDev   map[int64]*client
	mem     []posthorn.Committed // own commits, not yet delivered
	tailq   []posthorn.Event     // those that the tail brings
	past    []posthorn.Event
	acks    []func()
	ops     int
	dones   map[*posthorn.Op]int
	lost    map[string]bool // conversations of which an event never came: only the audit will tell
	err     error
}

func (m *model) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// play runs a script in a bubble of its own.
func play(t *testing.T, st stage, script []step, strict bool, change func(*posthorn.Limits)) (err error) {
	var w *world
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, strings.Join(w.story, "\n"))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		m := &model{house: newHouse(t, change), stage: st, strict: strict, byDev: map[int64]*client{}, dones: map[*posthorn.Op]int{}, lost: map[string]bool{}}
		m.Start(t.Context())
		defer m.Stop(context.Background())
		w = m.w
		w.gate(true)
		for i := range st.devices {
			if st.met {
				m.do(step{op: opHello, a: i})
			}
		}
		for _, s := range script {
			m.do(s)
			synctest.Wait()
			m.judge()
			if m.err != nil {
				err = m.err
				m.release()
				return
			}
		}
		m.settle()
		err = m.err
	})
	return err
}

func pick[T any](all []T, i int) (x T, ok bool) {
	if len(all) == 0 {
		return x, false
	}
	return all[i%len(all)], true
}

func (m *model) userOf(device int64) string { return fmt.Sprint("u", device%int64(m.users)) }

// release lets everything go on.
func (m *model) release() {
	for synctest.Wait(); m.w.step(0); synctest.Wait() {
		m.judge()
	}
	m.w.gate(false)
}

// settle brings all that is under way to its end, and compares.
func (m *model) settle() {
	m.w.away(false)
	for _, c := range m.clients {
		c.full.Store(false)
	}
	for len(m.mem)+len(m.tailq) > 0 {
		m.do(step{op: opOwn, a: 2})
		if len(m.mem) == 0 || m.overtakes(m.mem[0].Event) {
			m.readTail()
		}
	}
	m.release()
	for _, c := range m.clients {
		if c.activate != nil {
			m.activateClient(c)
		}
	}
	for _, f := range m.acks {
		f()
	}
	synctest.Wait()
	if m.strict {
		m.sleep(firstBackOff) // a load that was overtaken too often
	} else {
		m.sleep(2*time.Second + lastBackOff)
	}
	m.judge()
	if m.strict {
		m.complete()
		m.audited()
	} else {
		m.heal()
		m.sleep(2 * m.cfg.Limits.SweepInterval)
		m.judge()
	}
	m.caughtUp()
	for _, c := range m.clients {
		m.Unregister(c.socket)
	}
	m.sleep(m.cfg.Limits.HoldGap)
	if err := m.empty(); err != nil {
		m.fail("%w", err)
	}
	if len(m.dones) != m.ops {
		m.fail("%d of %d ops were answered", len(m.dones), m.ops)
	}
	for op, n := range m.dones {
		if n != 1 {
			m.fail("an op in %s was answered %d times", op.Conv, n)
		}
	}
}

// TestO1_V1_D5_AnyInterleaving: whatever the order in which sockets come, sub, are activated and go, loads take their
// snapshots and return, commits are delivered (by memory and by the tail, out of order, twice), members come and go and
// devices ack: each socket is pushed exactly what it may see above its views, in order, once, with the true prev, a conv
// frame first, its own sends answered in their place; and it lags by exactly what it has not acked.
func TestO1_V1_D5_AnyInterleaving(t *testing.T) {
	weights := []int{opNone: 1, opHello: 2, opSub: 6, opActivate: 6, opGone: 1, opLoad: 14, opSend: 7, opJoin: 6, opLeave: 4, opOwn: 8, opTail: 6, opAgain: 1, opAck: 4, opFlush: 3, opTime: 0}
	rapid.Check(t, func(rt *rapid.T) {
		st, script := draw(rt, weights)
		if err := play(t, st, script, true, nil); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestV1_B17_NothingIsQueuedBehindALeave: the same where hardly anything happens but joins, leaves and messages, rows are
// lost and waits for them given up: no event above a leave is ever handed to a socket of the one who left, so none can
// wait in its queue; nor does a hint or a conv frame tell them of one.
func TestV1_B17_NothingIsQueuedBehindALeave(t *testing.T) {
	weights := []int{opNone: 1, opHello: 1, opSub: 4, opActivate: 4, opLoad: 14, opSend: 12, opJoin: 10, opLeave: 10, opOwn: 10, opTail: 6, opAgain: 3, opAck: 1, opFlush: 1, opTime: 8, opFull: 1, opLose: 4}
	rapid.Check(t, func(rt *rapid.T) {
		st, script := draw(rt, weights)
		buffer := rapid.SampledFrom([]int{2, 4, 4096}).Draw(rt, "HubBuffer")
		if err := play(t, st, script, false, func(l *posthorn.Limits) { l.HubBuffer, l.SweepInterval = buffer, time.Second }); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestD5_V1_AnyInterleavingWithDelays: the same while time passes, waits expire, queues and buffers overflow, the
// database is away and the tail drops rows. Still nobody is pushed what they may not see, every op is answered once, and with one sweep every client catches up.
func TestD5_V1_AnyInterleavingWithDelays(t *testing.T) {
	weights := []int{opNone: 1, opHello: 2, opSub: 6, opActivate: 6, opGone: 1, opLoad: 14, opSend: 7, opJoin: 6, opLeave: 4, opOwn: 8, opTail: 3, opAgain: 2, opAck: 4, opFlush: 3, opTime: 6, opFull: 2, opAway: 1, opLose: 1}
	rapid.Check(t, func(rt *rapid.T) {
		st, script := draw(rt, weights)
		buffer := rapid.SampledFrom([]int{2, 4, 4096}).Draw(rt, "HubBuffer")
		if err := play(t, st, script, false, func(l *posthorn.Limits) { l.HubBuffer, l.SweepInterval = buffer, time.Second }); err != nil {
			rt.Fatal(err)
		}
	})
}
