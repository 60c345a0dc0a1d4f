package posthorn

import (
	"context"
	"time"
)

// The ports join the rooms: gateway and api call Log and Directory, which the store fills; the store calls Fanout,
// which the hub fills; the hub calls Loader (store) and Socket (gateway). cmd wires them by hand.

// Viewer is for whom something is read or done: a user on a device, a user without one (HTTP), or a server key.
type Viewer struct {
	User     string
	Device   string
	DeviceID int64 // 0: no device
	Install  int64
	Server   bool // a server key: sees everything, is not asked for membership or role

	// Epoch of the session: the seqs that its frames name count in no other (E1). 0: no session.
	Epoch int64
	// Generation of the device's route: of two connections the one with the higher lives (G1). 0: no session.
	Generation int64
}

// Op is one request that writes to a conversation's log. Ops of one conversation are carried out in the order in which
// they were submitted.
type Op struct {
	Kind      Kind // msg, join, leave, meta
	Conv      string
	Sender    string // "" for a server key that speaks for nobody
	DeviceID  int64  // 0: sent for the user over HTTP
	AsServer  bool   // role is not judged; membership of a named sender still is
	Cmid      string
	Body      *string
	Data      []byte
	ReplyTo   int64
	Target    int64
	Epoch     int64    // the epoch in which ReplyTo and Target name something; 0: whichever is in force
	Users     []string // join, leave
	Role      Role     // join: the role of those who come in
	Title     string   // meta
	Origin    Socket   // the connection that gets the reply instead of a push; may be nil
	Submitted time.Time

	// Done is called once, from a goroutine that must not be blocked: after COMMIT, with the refusal, or with ErrUnknown.
	Done func(Outcome)
}

// Size is what the op counts for in bounds on bytes.
func (o *Op) Size() int {
	n := 256 + len(o.Data) + len(o.Title) + len(o.Conv) + len(o.Sender) + len(o.Cmid)
	if o.Body != nil {
		n += len(*o.Body)
	}
	for _, u := range o.Users {
		n += len(u)
	}
	return n
}

// Outcome is what became of an Op.
type Outcome struct {
	Conv  string
	Seq   int64
	Prev  int64 // the previous seq that the sender may see; meaningless where Dup
	Mid   string
	Dup   bool
	Epoch int64
	At    time.Time
	Err   error
}

// Open asks for a new conversation.
type Open struct {
	Creator  string // "" for a server key
	Device   int64
	Cmid     string // unique per creator
	Conv     string // chosen by a server key; otherwise the store makes one
	Kind     ConvKind
	Title    string
	Members  []string // the creator is added where it has a name
	History  string   // "joined" or "all"
	AsServer bool
}

// Opened answers Open.
type Opened struct {
	Conv string
	Head int64
	Dup  bool
}

// Ack says that a device holds everything up to Seq. Done gets the stored cursor; it may be nil.
type Ack struct {
	Viewer Viewer
	Conv   string
	Seq    int64
	Done   func(delivered int64, err error)
}

// Entry is a conversation in a user's list.
type Entry struct {
	Conv      string
	Kind      ConvKind
	Title     string
	Role      Role
	Head      int64 // visible head
	Floor     int64
	Start     int64
	Delivered int64
	Read      int64
	Unread    int64
	RV        int64
	Last      *Event // newest visible event, or nil where its content is gone
	LastAt    time.Time
	Left      bool
	Epoch     int64
}

// ListQuery pages a user's conversations by conversation id.
type ListQuery struct {
	Since string // opaque, from an earlier list: only what changed since
	After string // conversation id, exclusive
	Limit int
}

// List is one page of a user's conversations.
type List struct {
	Entries []Entry
	Next    string // "" at the end
	Since   string
}

// PageQuery asks for events: forwards from After, the newest Tail, or backwards from Before (history).
type PageQuery struct {
	Conv    string
	After   int64
	Tail    int   // > 0: the newest ones, and a start mark for a new device
	Before  int64 // with History: exclusive; 0: from the newest
	History bool
	Limit   int
}

// Page is one stretch of a conversation as the viewer may see it.
type Page struct {
	Conv      string
	Events    []Event
	Skip      [][2]int64 // stretches that the viewer may not see
	Upto      int64      // the cursor after applying the page
	Start     int64
	Head      int64 // visible head
	Floor     int64
	Truncated bool
	More      bool
	RV        int64
	Epoch     int64
}

// MemberInfo is one line of a member list.
type MemberInfo struct {
	User  string
	Name  string
	Role  Role
	Since int64 // the join event's seq
}

// Pair names an event in a way that survives a rewind: equal mids at equal seqs are the same event.
type Pair struct {
	Seq int64
	Mid string
}

// Hello asks for a session of a device.
type Hello struct {
	User    string
	Device  string
	Install *int64 // nil: the server assigns the next
	Resume  string // "" : absent
	Epoch   int64  // the newest one that the client has seen; 0: none
}

// Session answers Hello.
type Session struct {
	Viewer Viewer
	Resume string // the renewed nonce
}

// Log is what the gateway and the HTTP calls ask of the message store.
type Log interface {
	Submit(op *Op) // never blocks; at a full queue Done gets UNAVAILABLE
	SubmitAck(a Ack)
	OpenConversation(ctx context.Context, o Open) (Opened, error)
	Hello(ctx context.Context, h Hello) (Session, error)
	FirstFrame(s Session) // the client has stored the new nonce: the previous one is void; never blocks
	// Registered says that the fan-out knows the session's connection now. If a newer one was made elsewhere meanwhile,
	// Fanout.Replaced follows; never blocks.
	Registered(s Session)
	Conversations(ctx context.Context, v Viewer, q ListQuery) (List, error)
	Page(ctx context.Context, v Viewer, q PageQuery) (Page, error)
	Typing(conv, user string) // tells everybody's gateways, or is lost; never blocks
	Members(ctx context.Context, v Viewer, conv, after string, limit int) (members []MemberInfo, next string, err error)
	Confirm(ctx context.Context, v Viewer, conv string, pairs []Pair) (Pair, error)
	Epoch() int64
}

// Committed is an event on its way to the sockets, with the op that made it where that op was submitted here.
type Committed struct {
	Event Event
	Prev  int64 // the previous seq that the sender may see
	Op    *Op   // nil: read from the log
	Epoch int64
}

// Fanout takes committed events. For one conversation seqs rise within a call; between calls they may come late or
// twice, and the receiver puts them in order. It never blocks on the network.
type Fanout interface {
	Deliver(events []Committed)
	// Wants tells whether any local connection cares for the conversation, or is one of the users.
	Wants(conv string, users []string) bool
	// Heads lists the conversations that have local listeners, with the seq up to which they were fanned out.
	Heads() map[string]int64
	// Delivered moves a device's cursor after the flush of its ack has committed.
	Delivered(deviceID int64, conv string, delivered int64)
	// Revoked closes the connections of a device with bye UNAUTHENTICATED.
	Revoked(deviceID int64)
	// Replaced closes the connection of a device with bye REPLACED if its generation is lower.
	Replaced(deviceID, generation int64)
	// Devices lists who is connected here.
	Devices() []Viewer
	// NewEpoch closes every connection of another epoch with bye NEW_EPOCH and forgets all conversations. From then on
	// neither connections nor events of another epoch are taken.
	NewEpoch(epoch int64)

	// Typing shows that a member is writing to those who are connected here.
	Typing(conv, user string)

	// Behind tells from which seq on a conversation that is known to reach head has not been fanned out here; 0: nobody
	// here follows it, or nothing is missing.
	Behind(conv string, head int64) (from int64)
	// Unaware tells whether one of the users is connected here and was not told that they came into the conversation at
	// seq or later.
	Unaware(conv string, users []string, seq int64) bool
	// Caught gives up to n cursors of which the fan-out believes that they have caught up; Correct takes what is stored
	// of them instead and tells how many were wrong.
	Caught(n int) []Claim
	Correct(stored []Claim) (wrong int)
}

// Claim says that a device has acked all of a conversation that it was given.
type Claim struct {
	DeviceID  int64
	Install   int64
	Conv      string
	Head      int64 // up to here it was given events
	Delivered int64 // filled in by the store: what it has acked
}

// View is what the hub must know of a user in a conversation to push and to notice loss.
type View struct {
	Conv      string
	Kind      ConvKind
	User      string
	Head      int64 // of the conversation, in the snapshot that the rest was read in
	Visible   int64 // the user's visible head in that snapshot
	Periods   Periods
	HasCursor bool  // a cursor row of the device's current install exists
	Start     int64 // of the device asked for
	Delivered int64
}

// Loader reads views for the hub, each call in one snapshot.
type Loader interface {
	// LoadDevice gives the views of all conversations that the user is, or was until they ack it, in.
	LoadDevice(ctx context.Context, v Viewer) ([]View, error)
	// LoadUsers gives the views of some users in one conversation, without device cursors.
	LoadUsers(ctx context.Context, conv string, users []string) ([]View, error)
	// Entry gives the list entry of a conversation for a conv frame.
	Entry(ctx context.Context, v Viewer, conv string) (Entry, error)
	// WakeTail asks the tail to read at once; it never blocks.
	WakeTail()
}

// Socket is a connection as the hub sees it. No method blocks; each is legal after the connection has ended.
type Socket interface {
	// Viewer of the session.
	Viewer() Viewer
	// PushEvent queues an encoded event frame; false: the queue is full and the frame was dropped.
	PushEvent(frame []byte, conv string, seq int64) bool
	// PushConv queues a conv frame; false likewise.
	PushConv(e Entry) bool
	// PushHint queues a hint, replacing one that waits for the same conversation.
	PushHint(conv string, head, rv int64, why string) bool
	// PushTyping says that a user is writing; false: there was no room, which harms nobody.
	PushTyping(conv, user string) bool
	// Close says bye with this code and ends the connection.
	Close(code Code)
}
