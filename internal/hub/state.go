package hub

import (
	"cmp"
	"slices"
	"time"

	"github.com/posthorn/posthorn"
)

// What the hub remembers. Only conversations with a local member and only local members are kept: the cost follows who is
// connected, not the size of a group. All of it is guarded by Hub.mu.

// conv is a conversation with local members.
type conv struct {
	id      string
	kind    posthorn.ConvKind // "" until the first view has come
	since   time.Duration     // followed since
	base    int64             // up to here nothing was fanned out: it was past when the conversation began to be followed
	head    int64             // up to here it was fanned out, holes excepted
	members []*member
	held    []item // above head+1, by seq
	bytes   int    // of held
	holes   []span // below head: what was not waited for any longer; by seq

	known, next int64         // heads that views have told: the events up to there exist and must come; see expect
	knownAt     time.Duration // when known was told
	due         time.Duration // when the wait for what is missing ends; 0: nothing is known to be missing
}

// span is a stretch of seqs, both ends included.
type span struct{ from, to int64 }

// user is somebody with a connection that has subscribed.
type user struct {
	name    string
	conns   []*conn
	members map[*conv]*member
}

// member is a local user in a conversation.
type member struct {
	user    *user
	conv    *conv
	at      int32    // place in conv.members
	load    *loading // nil: the periods are known
	periods posthorn.Periods
	base    int64 // up to here nothing was offered to them: they are followed from a view on that held it
	head    int64 // the seq up to which the periods are complete
	visible int64 // newest event that the user may see, of those loaded or fanned out
}

// conn is a connection of a device.
type conn struct {
	sock   posthorn.Socket
	viewer posthorn.Viewer
	user   *user // nil unless subscribed
	phase  phase
	live   bool   // was active: a sub that fails takes it back there
	turn   uint64 // of its subs: what belongs to an older one is void
	pend   *pending
	lag    map[string]lagging
	peak   int             // entries that lag has had room for
	marks  map[string]mark // exceptions for single conversations, mostly none
}

// phase of a connection; only one that is not registered has a user.
type phase uint8

const (
	registered phase = iota // has said hello
	loads                   // its views are being read
	waits                   // loaded, but subbed is not written yet
	active                  // gets pushes
)

// knows tells whether the connection has been told of all conversations of which its user's members are known.
func (c *conn) knows() bool { return c.phase >= waits || c.live }

// unaware tells whether the user has a connection that must be told of a stay that begins at seq. Those that are reading
// their views will learn of it there, see outdated.
func (u *user) unaware(conv string, seq int64) bool {
	return slices.ContainsFunc(u.conns, func(c *conn) bool {
		mk := c.marks[conv]
		return c.knows() && (mk.from < seq || (mk.awaits > 0 && seq >= mk.awaits))
	})
}

// mark is what is special about a conversation for one connection.
type mark struct {
	from      int64           // events up to here are known to the device already, or are told otherwise
	awaits    int64           // its view may say that the user is in, by a join at this seq or later that is still on its way
	base      int64           // while its views were read, it was given what lies above base, up to from
	delivered int64           // the device has acked more than was fanned out
	owed      *posthorn.Entry // the conv frame found no room: it comes before the next event
}

// item is an event on its way.
type item struct {
	ev     *posthorn.Event
	op     *posthorn.Op // nil: none, or answered
	origin posthorn.Socket
	prev   int64 // for the sender
	epoch  int64
	at     time.Duration // when it came
	kept   bool          // ev is our own copy
	late   bool          // it fills a hole
}

func bySeq(a, b item) int { return cmp.Compare(a.ev.Seq, b.ev.Seq) }

// keep copies the event, so that what waits does not hold on to the memory of its batch.
func (it *item) keep() {
	if !it.kept {
		ev := *it.ev
		it.ev, it.kept = &ev, true
	}
}

// move copies an item to where it waits, and its op, which is answered once, with it.
func (it *item) move() item {
	it.keep()
	x := *it
	it.op = nil
	return x
}

// size is what the event counts for in bounds on bytes.
func (it *item) size() int {
	n := 256 + len(it.ev.Data)
	if it.ev.Body != nil {
		n += len(*it.ev.Body)
	}
	for _, u := range it.ev.Users {
		n += 16 + len(u)
	}
	return n
}

// track begins to follow a conversation.
func (h *Hub) track(id string, head int64) *conv {
	cv := &conv{id: id, since: h.now, base: head, head: head}
	h.convs[id] = cv
	return cv
}

// enter makes a member.
func (h *Hub) enter(u *user, cv *conv) *member {
	m := &member{user: u, conv: cv, at: int32(len(cv.members))}
	cv.members = append(cv.members, m)
	if u.members == nil {
		u.members = map[*conv]*member{}
	}
	u.members[cv] = m
	return m
}

// drop forgets a member, and the conversation with its last one.
func (h *Hub) drop(m *member) {
	cv, last := m.conv, len(m.conv.members)-1
	cv.members[m.at] = cv.members[last]
	cv.members[m.at].at = m.at
	cv.members[last] = nil
	cv.members = cv.members[:last]
	delete(m.user.members, cv)
	if ld := m.load; ld != nil {
		m.load = nil
		h.answerAll(ld.buf)
	}
	if last == 0 {
		delete(h.convs, cv.id)
		delete(h.gaps, cv)
		h.n.held -= len(cv.held)
		held := cv.held
		cv.held, cv.bytes, cv.due = nil, 0, 0
		for i := range held {
			h.deliver(&held[i]) // it may bring somebody back in
		}
	}
}

// prune drops those who have left and have had their leave event. While there are holes they stay: an event that fills
// one may still be for them.
func (h *Hub) prune(cv *conv) {
	if len(cv.holes) > 0 {
		return
	}
	for i := len(cv.members) - 1; i >= 0; i-- {
		m := cv.members[i]
		if m.load != nil || m.periods.Present() || m.periods.Bound(cv.head+1) > cv.head {
			continue
		}
		// A join that is told twice must not bring it all back; but one that the connection's view knows already must.
		left := m.periods.Bound(cv.head)
		for _, c := range m.user.conns {
			mk := c.marks[cv.id]
			mk.awaits = 0
			if mk.from > left {
				mk.awaits = left + 1
			}
			mk.from = max(mk.from, left)
			if c.phase == loads {
				mk.base = m.base
			}
			c.mark(cv.id, mk)
		}
		h.drop(m)
	}
}

func (c *conn) mark(conv string, mk mark) {
	if mk == (mark{}) {
		if delete(c.marks, conv); len(c.marks) == 0 {
			c.marks = nil // a map keeps its room
		}
		return
	}
	if c.marks == nil {
		c.marks = map[string]mark{}
	}
	c.marks[conv] = mk
}
