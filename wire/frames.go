package wire

import "github.com/posthorn/posthorn"

// Frame is a decoded frame: a pointer to one of the structs below, which are named after "t". Frames of the protocol that
// no issue has built yet (read, recall, edit, react, receipts) have no struct: their t is unknown.
type Frame interface{ Type() string }

// Client to server. RID is "" where absent. Optional integers that are absent are marked by a nil pointer or by Has….

type Hello struct {
	RID     string
	Token   string
	Device  string
	Install *int64
	Resume  string
	Epoch   int64
}

type Confirm struct {
	RID   string
	Conv  string
	Pairs []posthorn.Pair
}

type Sub struct {
	RID   string
	Since string
	After string
	Limit int // 0: absent
}

type Send struct {
	RID     string
	Conv    string
	Cmid    string
	Body    *string
	Data    []byte // a JSON object, as it came
	ReplyTo int64  // 0: absent
}

type Ack struct {
	RID  string
	Conv string
	Seq  int64
	RV   *int64
}

type Sync struct {
	RID   string
	Conv  string
	After int64
	Tail  int // > 0: tail instead of after
	Limit int // 0: absent
	RV    *int64
}

type History struct {
	RID    string
	Conv   string
	Before int64
	Limit  int
}

type Open struct {
	RID     string
	Cmid    string
	Kind    posthorn.ConvKind
	Members []string
	Title   string
	History string // "joined" (default) or "all"
}

// Change is add, remove or leave, told apart by T.
type Change struct {
	T     string
	RID   string
	Conv  string
	Cmid  string
	Users []string // empty for leave
}

type Members struct {
	RID   string
	Conv  string
	After string
	Limit int
}

type Ping struct{ RID string }

// Server to client.

type Welcome struct {
	RID          string
	User, Device string
	InstallEpoch int64
	Resume       string
	HeartbeatMS  int64
	MaxFrame     int64
	Gateway      string
	Epoch        int64
}

type Confirmed struct {
	RID  string
	Conv string
	Seq  int64
	Mid  string
}

type Subbed struct {
	RID   string
	Convs []posthorn.Entry
	Next  string
	Since string
}

type Sent struct {
	RID   string
	Conv  string
	Seq   int64
	Prev  int64 // meaningless where Dup; not written then
	Mid   string
	Dup   bool
	Epoch int64
	At    int64 // ms since 1970
}

type Acked struct {
	RID       string
	Conv      string
	Delivered int64
}

// Page answers sync and history.
type Page struct {
	RID  string
	Page posthorn.Page
}

type Opened struct {
	RID  string
	Conv string
	Head int64
	Dup  bool
}

type MemberList struct {
	RID     string
	Conv    string
	Members []posthorn.MemberInfo
	Next    string
}

type Pong struct{ RID string }

type Event struct {
	Prev int64
	Ev   posthorn.Event
}

type Conv struct{ Entry posthorn.Entry }

type Hint struct {
	Conv string
	Head int64
	RV   int64
	Why  string
}

type Error struct {
	RID     string
	Code    posthorn.Code
	Msg     string
	RetryMS int64
}

type Bye struct {
	Code        posthorn.Code
	ReconnectMS int64
}

// Typing says that a user is writing; from a client without User, from the server with it.
type Typing struct {
	RID  string
	Conv string
	User string
}

// Unknown is a server frame of a later version; clients ignore it.
type Unknown struct{ T string }

func (*Hello) Type() string      { return "hello" }
func (*Confirm) Type() string    { return "confirm" }
func (*Sub) Type() string        { return "sub" }
func (*Send) Type() string       { return "send" }
func (*Ack) Type() string        { return "ack" }
func (*Sync) Type() string       { return "sync" }
func (*History) Type() string    { return "history" }
func (*Open) Type() string       { return "open" }
func (c *Change) Type() string   { return c.T }
func (*Members) Type() string    { return "members" }
func (*Ping) Type() string       { return "ping" }
func (*Typing) Type() string     { return "typing" }
func (*Welcome) Type() string    { return "welcome" }
func (*Confirmed) Type() string  { return "confirmed" }
func (*Subbed) Type() string     { return "subbed" }
func (*Sent) Type() string       { return "sent" }
func (*Acked) Type() string      { return "acked" }
func (*Page) Type() string       { return "page" }
func (*Opened) Type() string     { return "opened" }
func (*MemberList) Type() string { return "memberlist" }
func (*Pong) Type() string       { return "pong" }
func (*Event) Type() string      { return "event" }
func (*Conv) Type() string       { return "conv" }
func (*Hint) Type() string       { return "hint" }
func (*Error) Type() string      { return "error" }
func (*Bye) Type() string        { return "bye" }
func (u *Unknown) Type() string  { return u.T }
