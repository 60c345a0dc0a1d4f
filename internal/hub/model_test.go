package hub

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
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
		n := rapid.SampledFrom(sixty)
		return step{rapid.SampledFrom(ops).Draw(t, "op"), n.Draw(t, "a"), n.Draw(t, "b"), n.Draw(t, "c")}
	})
	least := rapid.SampledFrom([]int{1, 40, 80, 160}).Draw(t, "least")
	return st, rapid.SliceOfN(one, least, 200).Draw(t, "script")
}

var sixty = func() (all []int) {
	for i := range 60 {
		all = append(all, i)
	}
	return all
}()

// client is a socket and what it must have been told.
type client struct {
	*socket
	seen     int // records judged
	last     map[string]int64
	lagHead  map[string]int64
	snap     map[string]int64 // heads of all conversations when its views were read
	told     map[string]int64 // newest head that a conv frame or a view told
	gone     bool
	starting bool
	activate func()
	cursor   map[string]int64 // contiguous, as a client keeps it
	active   bool
	odd      map[string]error // by conversation: out of order, which only a hint of a gap excuses
	excused  map[string]bool
	early    map[told]bool // answers that did not wait for their place
}

// lacks is the newest event below seq that must have been told in its place.
func (c *client) lacks(lb *logbook, seq int64) int64 {
	seq = lb.before(c.viewer.User, seq)
	for c.early[told{conv: lb.id, seq: seq}] {
		seq = lb.before(c.viewer.User, seq)
	}
	return seq
}

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
			nsteps++
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

const (
	opNone = iota // what others shrink to
	opHello
	opSub
	opActivate
	opGone
	opLoad // a load goes on to its next gate
	opSend
	opJoin
	opLeave
	opOwn // deliver from memory
	opTail
	opAgain
	opAck
	opFlush
	opTime
	opFull // a socket's queue is full, or not any more
	opAway // the database is away, or back
	opLose // the tail drops a row
)

func pick[T any](all []T, i int) (x T, ok bool) {
	if len(all) == 0 {
		return x, false
	}
	return all[i%len(all)], true
}

func (m *model) userOf(device int64) string { return fmt.Sprint("u", device%int64(m.users)) }

func (m *model) do(s step) {
	conv := fmt.Sprint("c", s.a%m.convs)
	user := fmt.Sprint("u", s.b%m.users)
	switch s.op {
	case opHello:
		dev := int64(s.a%m.devices) + 1
		if old := m.byDev[dev]; old != nil {
			old.gone = true
		}
		c := &client{socket: m.hello(m.userOf(dev), dev), last: map[string]int64{}, lagHead: map[string]int64{}, told: map[string]int64{}, cursor: map[string]int64{}, odd: map[string]error{}, excused: map[string]bool{}, early: map[told]bool{}}
		m.byDev[dev] = c
		m.w.tell("%s comes", c.name())
		m.clients = append(m.clients, c)
	case opSub:
		if c, ok := pick(m.clients, s.a); ok && !c.gone && !c.starting && (m.strict || c.activate == nil) {
			m.sub(c)
		}
	case opActivate:
		if c, ok := pick(m.clients, s.a); ok && c.activate != nil {
			m.activateClient(c)
		}
	case opGone:
		if c, ok := pick(m.clients, s.a); ok { // a late close of an older socket too
			m.w.tell("%s goes", c.name())
			m.Unregister(c.socket)
			c.gone = true
		}
	case opLoad:
		m.w.step(s.a)
	case opSend:
		m.write(s.c, conv, user, posthorn.KindMsg)
	case opJoin:
		m.write(s.c, conv, user, posthorn.KindJoin)
	case opLeave:
		m.write(s.c, conv, user, posthorn.KindLeave)
	case opOwn:
		n := 0
		for n < min(1+s.a%3, len(m.mem)) && !m.overtakes(m.mem[n].Event) {
			n++
		}
		if n > 0 {
			batch := slices.Clone(m.mem[:n])
			m.mem = slices.Delete(m.mem, 0, n)
			for _, c := range batch {
				m.w.tell("own %s comes", c.Event.Mid)
				m.past = append(m.past, c.Event)
			}
			m.Deliver(batch)
		}
	case opTail:
		for range 1 + s.a%3 {
			m.readTail()
		}
	case opAgain:
		if ev, ok := pick(m.past, s.a*60+s.b); ok {
			m.w.tell("%s comes again", ev.Mid)
			m.tail(ev)
		}
	case opAck:
		if c, ok := pick(m.clients, s.a); ok && c.active && !c.gone {
			m.clientAck(c, conv, s.b%3 == 0)
		}
	case opFlush:
		if len(m.acks) > 0 {
			m.acks[0]()
			m.acks = m.acks[1:]
		}
	case opFull:
		if c, ok := pick(m.clients, s.a); ok {
			c.full.Store(!c.full.Load())
		}
	case opAway:
		m.w.away(s.a%2 == 0)
	case opLose:
		if len(m.tailq) > 0 {
			m.w.tell("%s is lost", m.tailq[0].Mid)
			m.lost[m.tailq[0].Conv] = true
			m.tailq = m.tailq[1:]
		}
	case opTime:
		m.w.tell("%d ms pass", s.a*50)
		m.sleep(time.Duration(s.a) * 50 * time.Millisecond)
	}
}

func (c *client) name() string {
	return fmt.Sprintf("%s on device %d", c.viewer.User, c.viewer.DeviceID)
}

func (m *model) sub(c *client) {
	m.w.tell("%s subs", c.name())
	c.starting, c.activate = true, nil // what an older sub has returned is void
	go func() {
		activate, err := m.Subscribe(m.t.Context(), c.socket)
		c.starting = false
		if err != nil {
			return
		}
		c.activate = activate
		m.w.tell("%s has subscribed", c.name())
		// What its views hold is told by subbed.
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		c.snap = m.w.snaps[c.viewer.DeviceID]
		old := c.lagHead
		c.last, c.lagHead = map[string]int64{}, map[string]int64{}
		for _, v := range m.w.views[c.viewer.DeviceID] {
			c.last[v.Conv], c.told[v.Conv] = v.Head, m.w.convs[v.Conv].head() // the list is read only now
			if _, row := m.w.cursors[key(c.viewer.DeviceID, v.Conv)]; row || v.HasCursor {
				c.lagHead[v.Conv] = v.Visible
			}
			if old[v.Conv] > v.Head {
				c.lagHead[v.Conv] = old[v.Conv]
			}
		}
	}()
}

func (m *model) activateClient(c *client) {
	c.active = true
	m.w.tell("%s is activated", c.name())
	// subbed and the syncs that follow it bring the client to what the log holds.
	m.w.mu.Lock()
	for conv := range c.last {
		c.cursor[conv] = m.w.convs[conv].visible(c.viewer.User)
	}
	m.w.mu.Unlock()
	c.activate()
	c.activate = nil
}

// write commits something, if the rules allow it, from the user's socket, over HTTP, or through another gateway.
func (m *model) write(how int, conv, user string, kind posthorn.Kind) {
	m.w.mu.Lock()
	lb := m.w.convs[conv]
	in := lb != nil && lb.periods[user].Present()
	m.w.mu.Unlock()
	sender, named := user, []string(nil)
	switch kind {
	case posthorn.KindMsg:
		if !in || (lb.kind == posthorn.Channel && lb.periods[user].Role() != posthorn.RoleOwner) {
			return
		}
	case posthorn.KindJoin:
		if in {
			return
		}
		if sender, named = "", []string{user}; lb == nil {
			k := posthorn.Group
			if conv == fmt.Sprint("c", m.channel) {
				k = posthorn.Channel
			}
			m.send(how, m.w.open(conv, k, user), nil)
			return
		}
	case posthorn.KindLeave:
		if !in {
			return
		}
		named = []string{user}
	}
	var c *client
	for dev := int64(1); dev <= int64(m.devices); dev++ {
		if x := m.byDev[dev]; x != nil && !x.gone && x.viewer.User == sender && (c == nil || (how+int(dev))%2 == 0) {
			c = x
		}
	}
	m.send(how, m.w.commit(conv, kind, sender, named...), c)
}

func (m *model) send(how int, ev posthorn.Event, c *client) {
	if how%3 == 0 {
		m.tailq = append(m.tailq, ev)
		return
	}
	op := &posthorn.Op{Kind: ev.Kind, Conv: ev.Conv, Sender: ev.Sender}
	op.Done = func(o posthorn.Outcome) {
		m.dones[op]++
		if o.Seq != ev.Seq || o.Mid != ev.Mid || o.Err != nil || o.Dup {
			m.fail("the answer to %s is %+v", ev.Mid, o)
		}
		if c != nil && op.Origin != nil {
			c.add(told{what: "sent", conv: o.Conv, seq: o.Seq, prev: o.Prev})
		}
	}
	if c != nil && how%3 == 1 {
		op.Origin, op.DeviceID = c.socket, c.viewer.DeviceID
	}
	m.ops++
	m.w.mu.Lock()
	prev := int64(0)
	if ev.Sender != "" {
		prev = m.w.convs[ev.Conv].before(ev.Sender, ev.Seq)
	}
	m.w.mu.Unlock()
	m.mem = append(m.mem, posthorn.Committed{Event: ev, Op: op, Prev: prev, Epoch: 1})
}

// overtakes tells of a second join that would come before the first one. Then prev tells of what came between, which the
// strict model does not know; so it does not come.
func (m *model) overtakes(ev posthorn.Event) bool {
	return m.strict && bringsIn(&ev) && slices.ContainsFunc(m.tailq, func(x posthorn.Event) bool {
		return x.Conv == ev.Conv && x.Seq < ev.Seq && slices.Contains(x.Users, ev.Users[0])
	})
}

// readTail brings one event, if it is wanted, as the store does. Where nothing may be lost, it does not overtake an own
// event that brings somebody in: the hub would not want it yet.
func (m *model) readTail() {
	if len(m.tailq) == 0 {
		return
	}
	ev := m.tailq[0]
	for _, c := range m.mem {
		if m.strict && c.Event.Conv == ev.Conv && c.Event.Seq < ev.Seq && c.Event.Kind != posthorn.KindMsg {
			return
		}
	}
	m.tailq = m.tailq[1:]
	m.past = append(m.past, ev)
	wanted := m.Wants(ev.Conv, ev.Users)
	m.w.tell("the tail reads %s, wanted: %v", ev.Mid, wanted)
	if wanted {
		m.tail(ev)
	}
}

// clientAck acks what the client holds without a gap; behind a gap it syncs first, or just so.
func (m *model) clientAck(c *client, conv string, sync bool) {
	m.w.mu.Lock()
	lb := m.w.convs[conv]
	if lb != nil && c.told[conv] > 0 && sync {
		c.cursor[conv] = lb.visible(c.viewer.User)
	}
	m.w.mu.Unlock()
	seq := c.cursor[conv]
	if lb == nil || seq == 0 {
		return
	}
	m.w.tell("%s acks %s/%d", c.name(), conv, seq)
	m.Heard(c.socket, conv, seq)
	dev := c.viewer.DeviceID
	m.acks = append(m.acks, func() {
		delivered := m.w.ack(dev, conv, seq)
		m.w.tell("device %d has %s/%d delivered", dev, conv, delivered)
		m.Delivered(dev, conv, delivered)
	})
}

// judge reads what the sockets were told since the last time.
func (m *model) judge() {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for _, c := range m.clients {
		c.mu.Lock()
		for ; c.seen < len(c.log); c.seen++ {
			m.record(c, c.log[c.seen])
		}
		c.mu.Unlock()
	}
}

func (m *model) record(c *client, x told) {
	user := c.viewer.User
	m.w.tell("\t%s is told %v", c.name(), x)
	where := fmt.Sprintf("%s on device %d: %v after %v", user, c.viewer.DeviceID, x, c.log[:c.seen])
	switch x.what {
	case "bye":
		return
	case "hint":
		c.cursor[x.conv] = m.w.convs[x.conv].visible(user)
		if m.strict && x.why != "gap" {
			m.fail("%s", where)
		}
		c.excused[x.conv] = true
		c.last[x.conv] = max(c.last[x.conv], x.seq)
		c.lagHead[x.conv] = max(c.lagHead[x.conv], x.seq)
		return
	case "conv":
		c.told[x.conv] = max(c.told[x.conv], x.seq)
		if x.entry.Delivered > 0 {
			c.lagHead[x.conv] = max(c.lagHead[x.conv], x.seq)
		}
		return
	}
	lb := m.w.convs[x.conv]
	if !lb.sees(user, x.seq) {
		m.fail("%s: invisible (V1)", where)
		return
	}
	ev := lb.events[x.seq-1]
	want := lb.before(user, x.seq)
	// Where something passed unseen, prev may name what a channel hides: that costs a sync. It never leaves out what they
	// may see. TestV1_ChannelHidesWhoComesAndGoes has the rule.
	if x.prev != want && (x.prev < want || x.prev >= x.seq || lb.kind != posthorn.Channel) {
		m.fail("%s: the previous visible one is %d", where, want)
	}
	if x.what == "event" && !c.active {
		m.fail("%s: pushed before activate", where)
	}
	last, known := c.last[x.conv]
	if x.what == "sent" && (!c.active || x.seq <= last || c.gone) {
		return // told by subbed as well
	}
	if x.what == "sent" && !known {
		// Nobody knew yet that its sender is in, so it does not wait for its place.
		c.lagHead[x.conv] = max(c.lagHead[x.conv], x.seq)
		c.early[told{conv: x.conv, seq: x.seq}] = true
		return
	}
	names := slices.Contains(ev.Users, user)
	if names && ev.Kind != posthorn.KindLeave && c.told[x.conv] < x.seq && x.what == "event" {
		m.fail("%s: no conv frame before", where)
	}
	if m.strict {
		switch before := c.lacks(lb, x.seq); {
		case known && before > last:
			c.odd[x.conv] = fmt.Errorf("%s: %d was skipped", where, before)
		case known && x.seq <= last:
			c.odd[x.conv] = fmt.Errorf("%s: after %d", where, last)
		case !known && !bringsIn(&ev) && x.seq > m.w.cursors[key(c.viewer.DeviceID, x.conv)]:
			c.odd[x.conv] = fmt.Errorf("%s: is no beginning", where)
		}
	}
	c.last[x.conv] = max(last, x.seq)
	c.lagHead[x.conv] = max(c.lagHead[x.conv], x.seq)
	switch {
	case x.prev <= c.cursor[x.conv]:
		c.cursor[x.conv] = max(c.cursor[x.conv], x.seq)
		for seq := c.cursor[x.conv] + 1; seq <= lb.head(); seq++ {
			if lb.before(user, seq) == c.cursor[x.conv] && c.early[told{conv: x.conv, seq: seq}] {
				c.cursor[x.conv] = seq // was kept as one past a gap
			}
		}
	default:
		c.cursor[x.conv] = lb.visible(user) // the client syncs
	}
}

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
	if !m.strict {
		m.sleep(2*time.Second + lastBackOff)
	}
	m.judge()
	if m.strict {
		m.complete()
	} else {
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

// complete: every live socket was told all that it may see above its views, and lags by what it has not acked of it.
func (m *model) complete() {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for _, c := range m.clients {
		if !c.active || c.gone || c.starting {
			continue
		}
		lag := map[string]int64{}
		for conv, lb := range m.w.convs {
			if err := c.odd[conv]; err != nil && !c.excused[conv] {
				m.fail("%w", err)
			}
			last, known := c.last[conv]
			if at := c.lacks(lb, lb.head()+1); known && last < at {
				m.fail("%s on device %d ends at %s/%d, not %d", c.viewer.User, c.viewer.DeviceID, conv, last, at)
			} else if ps := lb.periods[c.viewer.User]; !known && len(ps) > 0 && ps[len(ps)-1].From > c.snap[conv] {
				m.fail("%s on device %d was never told of %s", c.viewer.User, c.viewer.DeviceID, conv)
			}
			if h := c.lagHead[conv]; h > m.w.cursors[key(c.viewer.DeviceID, conv)] {
				lag[conv] = h
			}
		}
		if got := m.lags(c.viewer.DeviceID); !maps.Equal(got, lag) {
			m.fail("device %d lags by %v, want %v", c.viewer.DeviceID, got, lag)
		}
	}
}

// caughtUp: whatever was lost on the way, clients that keep to the rules of the protocol hold everything in the end.
func (m *model) caughtUp() {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for _, c := range m.clients {
		for conv, lb := range m.w.convs {
			at := lb.visible(c.viewer.User)
			ps := lb.periods[c.viewer.User]
			_, known := c.last[conv]
			joined := len(ps) > 0 && ps[len(ps)-1].From > c.snap[conv]
			if !m.lost[conv] && c.active && !c.gone && !c.starting && (known || joined) && c.cursor[conv] < at {
				m.fail("%s on device %d holds %s up to %d, not %d (D5)", c.viewer.User, c.viewer.DeviceID, conv, c.cursor[conv], at)
			}
		}
	}
}

var nsteps int
var again, _ = strconv.Atoi(cmp.Or(os.Getenv("AGAIN"), "1"))

// TestO1_V1_D5_AnyInterleaving: whatever the order in which sockets come, sub, are activated and go, loads take their
// snapshots and return, commits are delivered (by memory and by the tail, out of order, twice), members come and go and
// devices ack: each socket is pushed exactly what it may see above its views, in order, once, with the true prev, a conv
// frame first, its own sends answered in their place; and it lags by exactly what it has not acked.
func TestO1_V1_D5_AnyInterleaving(t *testing.T) {
	weights := []int{opNone: 1, opHello: 2, opSub: 6, opActivate: 6, opGone: 1, opLoad: 14, opSend: 7, opJoin: 6, opLeave: 4, opOwn: 8, opTail: 6, opAgain: 1, opAck: 4, opFlush: 3, opTime: 0}
	rapid.Check(t, func(rt *rapid.T) {
		st, script := draw(rt, weights)
		for range again {
			if err := play(t, st, script, true, nil); err != nil {
				rt.Fatal(err)
			}
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
