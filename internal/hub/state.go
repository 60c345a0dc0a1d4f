package hub

import (
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
	typed  typed
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

// track begins to follow a conversation.
func (h *Hub) track(id string, head int64) *conv {
	cv := &conv{id: id, since: h.now, base: head, head: head}
	h.convs[id] = cv
	return cv
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
