package hub

import (
	"fmt"
	"slices"
	"time"

	"github.com/posthorn/posthorn"
)

// This half of the model plays: what the steps of a script do.

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
			m.clientAck(c, conv, s.b%3 == 0, s.b%4 == 0)
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

// clientAck acks what the client holds without a gap; behind a gap it syncs first, or just so. One that pages through a
// long absence has part of it only.
func (m *model) clientAck(c *client, conv string, sync, part bool) {
	m.w.mu.Lock()
	lb := m.w.convs[conv]
	if lb != nil && c.told[conv] > 0 && sync {
		c.cursor[conv] = lb.visible(c.viewer.User)
	}
	seq := c.cursor[conv]
	if lb != nil && part {
		seq = lb.before(c.viewer.User, seq)
	}
	m.w.mu.Unlock()
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
