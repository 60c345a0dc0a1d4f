package client

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// Op is what an outbox item asks the server to do.
type Op string

const (
	OpSend   Op = "send"
	OpAdd    Op = "add"
	OpRemove Op = "remove"
	OpLeave  Op = "leave"
	OpOpen   Op = "open"
)

// item is a request of the outbox as it is stored. Data is kept as the bytes that came: JSON inside JSON would be
// rewritten.
type item struct {
	Op      Op       `json:"op"`
	Conv    string   `json:"conv,omitempty"` // "" for open
	Cmid    string   `json:"cmid"`
	Body    *string  `json:"body,omitempty"`
	Data    []byte   `json:"data,omitempty"`
	ReplyTo int64    `json:"reply_to,omitempty"`
	Users   []string `json:"users,omitempty"` // add, remove; the first members of open
	Kind    string   `json:"kind,omitempty"`
	Title   string   `json:"title,omitempty"`
	History string   `json:"history,omitempty"`
	Queued  int64    `json:"queued"` // ms since 1970

	// The epoch in which reply_to names something; 0: not known. And whom it names, in words that survive a rewind.
	Epoch        int64  `json:"epoch,omitempty"`
	TargetSender string `json:"target_sender,omitempty"`
	TargetCmid   string `json:"target_cmid,omitempty"`
	Waiting      int64  `json:"waiting,omitempty"` // since when it waits for its target to be there again; ms, 0: it does not

	Again bool `json:"again,omitempty"` // was sent before a rewind and is offered again

	// Set where it failed.
	Code posthorn.Code `json:"code,omitempty"`
	Msg  string        `json:"msg,omitempty"`
}

// same tells whether a request has the same content, by the server's measure.
func (it *item) same(o *item) bool {
	return it.Op == o.Op && it.Conv == o.Conv && it.ReplyTo == o.ReplyTo && it.Kind == o.Kind && it.Title == o.Title && it.History == o.History &&
		(it.Body == nil) == (o.Body == nil) && (it.Body == nil || *it.Body == *o.Body) &&
		bytes.Equal(it.Data, o.Data) && slices.Equal(it.Users, o.Users)
}

func (it *item) fail(why error) {
	e := posthorn.AsError(why)
	it.Code, it.Msg, it.Waiting = e.Code, e.Msg, 0
}

func (it *item) err() *posthorn.Error { return &posthorn.Error{Code: it.Code, Msg: it.Msg} }

func (it *item) failed() bool  { return it.Code != "" }
func (it *item) waiting() bool { return it.Waiting != 0 }

// dated tells whether the item names a seq that means nothing in this epoch, and would be sent with it.
func (it *item) dated(epoch int64) bool {
	return it.ReplyTo != 0 && it.Epoch != 0 && it.Epoch != epoch && !it.failed() && !it.waiting()
}

// lane names what is sent in order: a conversation, or an open alone.
func (it *item) lane() string {
	if it.Op == OpOpen {
		return "\x00" + it.Cmid // no conversation has such a name
	}
	return it.Conv
}

// size is what the item counts for in the outbox's bound on bytes.
func (it *item) size() int {
	n := 256 + len(it.Conv) + len(it.Cmid) + len(it.Data) + len(it.Title)
	if it.Body != nil {
		n += len(*it.Body)
	}
	for _, u := range it.Users {
		n += len(u) + 16
	}
	return n
}

func (it *item) frame(rid string) wire.Frame {
	switch it.Op {
	case OpOpen:
		return &wire.Open{RID: rid, Cmid: it.Cmid, Kind: posthorn.ConvKind(it.Kind), Members: it.Users, Title: it.Title, History: it.History}
	case OpAdd, OpRemove, OpLeave:
		return &wire.Change{T: string(it.Op), RID: rid, Conv: it.Conv, Cmid: it.Cmid, Users: it.Users}
	default:
		return &wire.Send{RID: rid, Conv: it.Conv, Cmid: it.Cmid, Body: it.Body, Data: it.Data, ReplyTo: it.ReplyTo}
	}
}

// check holds the item to the server's own rules, so that what is obviously bad never enters the outbox. The strings are
// looked at first, because the encoder could not write what is no UTF-8; then the frame is read as a server would.
func (it *item) check() error {
	texts := map[string]string{"conv": it.Conv, "cmid": it.Cmid, "title": it.Title, "kind": it.Kind, "history": it.History}
	if it.Body != nil {
		texts["body"] = *it.Body
	}
	for _, name := range []string{"conv", "cmid", "body", "title", "kind", "history"} {
		if err := posthorn.CheckText(name, texts[name]); err != nil {
			return err
		}
	}
	for _, u := range it.Users {
		if err := posthorn.CheckText("users", u); err != nil {
			return err
		}
	}
	if it.Data != nil && (!json.Valid(it.Data) || it.Data[0] != '{') {
		return posthorn.Errorf(posthorn.CodeBadFrame, "data must be a JSON object")
	}
	if _, err := wire.Decode(wire.Append(nil, it.frame("1")), posthorn.DefaultLimits()); err != nil {
		return posthorn.AsError(err)
	}
	return nil
}

// own builds the event that the sent of a message stands for: the connection that sent it is not pushed it.
func (it *item) own(user string, s *wire.Sent) posthorn.Event {
	return posthorn.Event{Conv: s.Conv, Seq: s.Seq, Kind: posthorn.KindMsg, Mid: s.Mid, Sender: user, Cmid: it.Cmid,
		Body: it.Body, Data: it.Data, ReplyTo: it.ReplyTo, At: time.UnixMilli(s.At).UTC()}
}

// ItemState is where an outbox item stands.
type ItemState int

const (
	ItemPending ItemState = iota + 1 // waits for its turn, its answer or a connection
	ItemWaiting                      // waits for the message that it answers to be there again, after a rewind
	ItemFailed                       // refused for good; stays until Discard
)

// Item is an outbox item as it is shown.
type Item struct {
	Op      Op
	Conv    string
	Cmid    string
	Body    string
	Data    []byte
	ReplyTo int64
	Users   []string
	Title   string
	Queued  time.Time
	State   ItemState
	Err     *posthorn.Error // why it failed
}

func (it *item) show() Item {
	out := Item{Op: it.Op, Conv: it.Conv, Cmid: it.Cmid, Data: bytes.Clone(it.Data), ReplyTo: it.ReplyTo, Users: slices.Clone(it.Users),
		Title: it.Title, Queued: time.UnixMilli(it.Queued), State: ItemPending}
	if it.Body != nil {
		out.Body = *it.Body
	}
	switch {
	case it.failed():
		out.State, out.Err = ItemFailed, it.err()
	case it.waiting():
		out.State = ItemWaiting
	}
	return out
}
