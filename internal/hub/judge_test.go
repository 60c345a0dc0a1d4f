package hub

import (
	"fmt"
	"maps"
	"slices"

	"github.com/posthorn/posthorn"
)

// This half of the model judges: what a socket must be told follows from the log and from what its views held.

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

func (c *client) name() string {
	return fmt.Sprintf("%s on device %d", c.viewer.User, c.viewer.DeviceID)
}

// judge reads what the sockets were told since the last time.
func (m *model) judge() {
	claims := m.Caught(1000)
	m.w.mu.Lock()
	for _, x := range claims {
		if stored, row := m.w.cursors[key(x.DeviceID, x.Conv)]; row && stored < x.Head {
			m.fail("device %d is said to have caught up with %s/%d, and has acked %d", x.DeviceID, x.Conv, x.Head, stored)
		}
	}
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
		if top := m.w.convs[x.conv].visible(user); x.seq > top && m.w.convs[x.conv].kind != posthorn.Channel {
			m.fail("%s: the visible head is %d (V1)", where, top)
		}
		c.cursor[x.conv] = m.w.convs[x.conv].visible(user)
		if m.strict && x.why != "gap" {
			m.fail("%s", where)
		}
		c.excused[x.conv] = true
		c.last[x.conv] = max(c.last[x.conv], x.seq)
		c.lagHead[x.conv] = max(c.lagHead[x.conv], x.seq)
		return
	case "conv":
		if top := m.w.convs[x.conv].visible(user); x.seq > top {
			m.fail("%s: the visible head is %d (V1)", where, top)
		}
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
	acked := m.w.cursors[key(c.viewer.DeviceID, x.conv)] // what it has acked it has synced
	if again := len(lb.periods[user]) > 1 && c.lacks(lb, x.seq) > last; x.what == "sent" && (!known || again) {
		// Nobody knew yet that its sender is in, or in again, so it does not wait for its place. Its prev tells.
		c.lagHead[x.conv] = max(c.lagHead[x.conv], x.seq)
		c.early[told{conv: x.conv, seq: x.seq}] = true
		if known && x.prev <= max(c.cursor[x.conv], acked) {
			c.cursor[x.conv] = max(c.cursor[x.conv], x.seq)
		}
		return
	}
	names := slices.Contains(ev.Users, user)
	need := x.seq // a conv frame for each stay; where the end of the last one was lost, any will do, or a hint
	if !m.strict {
		need = 1
	}
	if names && ev.Kind != posthorn.KindLeave && max(c.told[x.conv], last) < need && x.what == "event" {
		m.fail("%s: no conv frame before", where)
	}
	if m.strict {
		switch before := c.lacks(lb, x.seq); {
		case known && before > max(last, acked):
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

// exact tells whether the hub knows the newest event that a member may see. It does not follow those who have left, and
// where something passed unseen a channel may hide what it takes for the newest one.
func (m *model) exact(user, conv string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.Hub.users[user]
	if u == nil {
		return false
	}
	x := u.members[m.Hub.convs[conv]]
	return x != nil && x.periods.Present() && !x.vague
}

// complete: every live socket was told all that it may see above its views, and lags by what it has not acked of it.
func (m *model) complete() {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for _, c := range m.clients {
		if !c.active || c.gone || c.starting {
			continue
		}
		lag, got := map[string]int64{}, m.lags(c.viewer.DeviceID)
		for conv, lb := range m.w.convs {
			if err := c.odd[conv]; err != nil && !c.excused[conv] {
				m.fail("%w", err)
			}
			last, known := c.last[conv]
			if at := c.lacks(lb, lb.head()+1); known && max(last, m.w.cursors[key(c.viewer.DeviceID, conv)]) < at {
				m.fail("%s on device %d ends at %s/%d, not %d", c.viewer.User, c.viewer.DeviceID, conv, last, at)
			} else if ps := lb.periods[c.viewer.User]; !known && len(ps) > 0 && ps[len(ps)-1].From > c.snap[conv] {
				m.fail("%s on device %d was never told of %s", c.viewer.User, c.viewer.DeviceID, conv)
			}
			h, cursor := c.lagHead[conv], m.w.cursors[key(c.viewer.DeviceID, conv)]
			if told := lb.before(c.viewer.User, last+1); known && cursor > 0 && (m.exact(c.viewer.User, conv) || got[conv] == told) {
				h = max(h, told) // since its first ack it lags by all that it was told
			}
			if h > cursor {
				lag[conv] = h
			}
		}
		if !maps.Equal(got, lag) {
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
			if !m.lost[conv] && c.active && !c.gone && !c.starting && (known || joined) && max(c.cursor[conv], m.w.cursors[key(c.viewer.DeviceID, conv)]) < at {
				m.fail("%s on device %d holds %s up to %d, not %d (D5)", c.viewer.User, c.viewer.DeviceID, conv, c.cursor[conv], at)
			}
		}
	}
}
