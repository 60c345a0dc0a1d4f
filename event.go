package posthorn

import "time"

// Kind says what an event is. Unknown kinds count as stored by clients, so that later kinds do not break them.
type Kind string

const (
	KindOpen   Kind = "open"   // seq 1: names the first members, whose periods begin there
	KindMsg    Kind = "msg"    // a message
	KindEdit   Kind = "edit"   // reserved for the issue that builds edits
	KindRecall Kind = "recall" // likewise
	KindReact  Kind = "react"  // likewise
	KindJoin   Kind = "join"   // members came in
	KindLeave  Kind = "leave"  // members left or were removed
	KindMeta   Kind = "meta"   // the conversation's title changed
)

// Membership tells whether the kind moves membership periods.
func (k Kind) Membership() bool { return k == KindOpen || k == KindJoin || k == KindLeave }

// Event is one committed line of a conversation's log. (Conv, Seq) is its place, (Conv, Sender, Cmid) its idempotency key.
type Event struct {
	Conv      string
	Seq       int64
	Kind      Kind
	Mid       string // made by the server, unique, sortable by the database's time
	Sender    string // a user, or "" for a server key
	ViaServer bool   // sent for a user over HTTP or SQL, not from a device
	Cmid      string // the sender's own id of the request
	Body      *string
	Data      []byte // a JSON object, exactly the bytes that came
	ReplyTo   int64  // 0: none
	Target    int64  // 0: none
	Recalled  bool   // a tombstone: body and data are gone
	At        time.Time
	Users     []string // open, join, leave: whom it concerns
	MsgNo     int64    // messages in this conversation up to and including this event
}

// ConvKind is the kind of a conversation.
type ConvKind string

const (
	Direct  ConvKind = "direct"  // two people, for good
	Group   ConvKind = "group"   // everyone writes
	Channel ConvKind = "channel" // admins write; membership events are seen by those concerned and by admins only
)

// VisibleIn tells whether a member sees the event at all, periods aside: in a channel, who came and went is shown to
// those concerned and to admins only (V1).
func (e *Event) VisibleIn(kind ConvKind, user string, role Role) bool {
	if kind != Channel || (e.Kind != KindJoin && e.Kind != KindLeave) || role.admin() {
		return true
	}
	for _, u := range e.Users {
		if u == user {
			return true
		}
	}
	return false
}
