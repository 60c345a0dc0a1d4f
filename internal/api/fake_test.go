package api

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/posthorn/posthorn"
)

// fake fills every port from memory, just well enough for the shapes of calls. What the store must prove is proved on a
// real database elsewhere.
type fake struct {
	mu      sync.Mutex // guards what follows
	users   map[string]User
	revoked []string
	keys    []Key
	convs   map[string]*conversation
	ops     []*posthorn.Op
	opens   []posthorn.Open
	views   []posthorn.Viewer
	pages   []posthorn.PageQuery
	lists   []posthorn.ListQuery
	tokens  []TokenRequest
	limits  []int
	ready   []Condition
	err     error              // what every port but Auth answers, where set
	authErr error              // what Auth answers, where set
	hold    bool               // Submit keeps its ops
	settle  func(*posthorn.Op) // instead of writing, where set
	panics  any                // Conversations panics with it, where set
	epoch   int64
}

type conversation struct {
	kind    posthorn.ConvKind
	title   string
	members []string
	events  []posthorn.Event
}

func newFake() *fake {
	f := &fake{users: map[string]User{}, convs: map[string]*conversation{}, ready: []Condition{{Name: "database", OK: true}}, epoch: 1}
	for _, c := range []string{"c1", "c2"} {
		f.convs[c] = &conversation{kind: posthorn.Group, members: []string{"anna", "ben"}, events: []posthorn.Event{
			{Conv: c, Seq: 1, Kind: posthorn.KindOpen, Mid: c + "-m1", Data: []byte(`{"users":["anna","ben"],"kind":"group","history":"joined"}`), At: at(1)},
		}}
	}
	return f
}

func at(n int64) time.Time { return time.UnixMilli(1767000000000 + n) }

func (f *fake) Bearer(_ context.Context, header string) (Caller, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.authErr != nil {
		return Caller{}, f.authErr
	}
	switch strings.TrimPrefix(header, "Bearer ") {
	case readKey:
		return Caller{Key: "1", Scopes: []Scope{ScopeRead}}, nil
	case writer:
		return Caller{Key: "2", Scopes: []Scope{ScopeWrite}}, nil
	case admin:
		return Caller{Key: "3", Scopes: []Scope{ScopeAdmin}}, nil
	case anna, ben, carla:
		return Caller{User: strings.TrimPrefix(header, "Bearer pht_"), Device: "phone"}, nil
	}
	return Caller{}, posthorn.Errorf(posthorn.CodeUnauthenticated, "the token is not valid")
}

func (f *fake) PutUser(_ context.Context, u User) (User, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.users[u.User]
	if !ok {
		empty := ""
		have = User{User: u.User, Name: &empty, Avatar: &empty}
	}
	if u.Name != nil {
		have.Name = u.Name
	}
	if u.Avatar != nil {
		have.Avatar = u.Avatar
	}
	f.users[u.User] = have
	return have, f.err
}

func (f *fake) ListUsers(_ context.Context, after string, limit int) (users []User, next string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limits = append(f.limits, limit)
	var ids []string
	for id := range f.users {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if id <= after {
			continue
		}
		if len(users) == limit {
			return users, users[limit-1].User, f.err
		}
		users = append(users, f.users[id])
	}
	return users, "", f.err
}

func (f *fake) RevokeDevice(_ context.Context, user, device string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if user == "ghost" {
		return posthorn.Errorf(posthorn.CodeNotFound, "no such device")
	}
	f.revoked = append(f.revoked, user+"/"+device)
	return f.err
}

func (f *fake) IssueToken(_ context.Context, r TokenRequest) (Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokens = append(f.tokens, r)
	if r.Device == "" {
		r.Device = "dev_made"
	}
	return Token{Token: "pht_made", User: r.User, Device: r.Device, ExpiresAt: at(0)}, f.err
}

func (f *fake) CreateKey(_ context.Context, name string, scopes []Scope) (Key, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(scopes) == 0 {
		return Key{}, "", posthorn.Errorf(posthorn.CodeBadFrame, "scopes must not be empty")
	}
	k := Key{ID: fmt.Sprint(len(f.keys) + 1), Name: name, Scopes: scopes}
	f.keys = append(f.keys, k)
	return k, "phk_made", f.err
}

func (f *fake) ListKeys(context.Context, string, int) ([]Key, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys, "", f.err
}

func (f *fake) RevokeKey(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.keys {
		if f.keys[i].ID == id {
			f.keys[i].Revoked = true
			return f.err
		}
	}
	return posthorn.Errorf(posthorn.CodeNotFound, "no such key")
}

func (f *fake) Conditions() []Condition {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready
}

func (f *fake) OpenConversation(_ context.Context, o posthorn.Open) (posthorn.Opened, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opens = append(f.opens, o)
	id := o.Conv
	if id == "" {
		id = "c-" + o.Cmid
	}
	if c, ok := f.convs[id]; ok {
		return posthorn.Opened{Conv: id, Head: int64(len(c.events)), Dup: true}, f.err
	}
	f.convs[id] = &conversation{kind: o.Kind, title: o.Title, members: o.Members, events: make([]posthorn.Event, 1)}
	return posthorn.Opened{Conv: id, Head: 1}, f.err
}

func (f *fake) Submit(op *posthorn.Op) {
	f.mu.Lock()
	f.ops = append(f.ops, op)
	hold, settle := f.hold, f.settle
	f.mu.Unlock()
	switch {
	case hold:
	case settle != nil:
		settle(op)
	default:
		op.Done(f.write(op))
	}
}

// write is the least of a log: numbers without holes, and one event per (conv, sender, cmid).
func (f *fake) write(op *posthorn.Op) posthorn.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.convs[op.Conv]
	switch {
	case f.err != nil:
		return posthorn.Outcome{Err: f.err}
	case c == nil || (op.Sender != "" && !slices.Contains(c.members, op.Sender)):
		return posthorn.Outcome{Err: posthorn.Errorf(posthorn.CodeNotMember, "no such conversation")}
	}
	for _, e := range c.events {
		if e.Cmid == op.Cmid && e.Sender == op.Sender {
			same := e.Kind == op.Kind && bytes.Equal(e.Data, op.Data) && (e.Body == nil) == (op.Body == nil) && (e.Body == nil || *e.Body == *op.Body)
			if !same {
				return posthorn.Outcome{Err: posthorn.Errorf(posthorn.CodeCmidReused, "another content")}
			}
			return posthorn.Outcome{Conv: op.Conv, Seq: e.Seq, Mid: e.Mid, Dup: true, Epoch: f.epoch, At: e.At}
		}
	}
	e := posthorn.Event{Conv: op.Conv, Seq: int64(len(c.events)) + 1, Kind: op.Kind, Sender: op.Sender, ViaServer: true, Cmid: op.Cmid,
		Body: op.Body, Data: op.Data, ReplyTo: op.ReplyTo, Users: op.Users}
	e.Mid, e.At = fmt.Sprintf("%s-m%d", op.Conv, e.Seq), at(e.Seq)
	c.events = append(c.events, e)
	switch op.Kind {
	case posthorn.KindMeta:
		c.title = op.Title
	case posthorn.KindJoin:
		c.members = append(c.members, op.Users...)
	case posthorn.KindLeave:
		c.members = slices.DeleteFunc(c.members, func(u string) bool { return slices.Contains(op.Users, u) })
	}
	return posthorn.Outcome{Conv: op.Conv, Seq: e.Seq, Prev: e.Seq - 1, Mid: e.Mid, Epoch: f.epoch, At: e.At}
}

// seen notes the viewer and finds the conversation, alike for one that is not there and one that is not theirs.
func (f *fake) seen(v posthorn.Viewer, conv string) (*conversation, error) {
	f.views = append(f.views, v)
	c := f.convs[conv]
	if f.err != nil {
		return nil, f.err
	}
	if c == nil || (!v.Server && !slices.Contains(c.members, v.User)) {
		return nil, posthorn.Errorf(posthorn.CodeNotMember, "no such conversation")
	}
	return c, nil
}

func (f *fake) Page(_ context.Context, v posthorn.Viewer, q posthorn.PageQuery) (posthorn.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages = append(f.pages, q)
	c, err := f.seen(v, q.Conv)
	if err != nil {
		return posthorn.Page{}, err
	}
	p := posthorn.Page{Conv: q.Conv, Head: int64(len(c.events)), Floor: 1, Upto: q.After, Epoch: f.epoch, Skip: [][2]int64{{8, 9}}}
	if q.After > p.Head {
		return posthorn.Page{}, posthorn.Errorf(posthorn.CodeCursorAhead, "seq=%d head=%d", q.After, p.Head)
	}
	for _, e := range c.events {
		if (q.History && e.Seq < q.Before) || (!q.History && e.Seq > q.After) {
			p.Events = append(p.Events, e)
			p.Upto = e.Seq
		}
	}
	if q.History {
		slices.Reverse(p.Events)
	}
	return p, nil
}

func (f *fake) Entry(_ context.Context, v posthorn.Viewer, conv string) (posthorn.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.seen(v, conv)
	if err != nil {
		return posthorn.Entry{}, err
	}
	return posthorn.Entry{Conv: conv, Kind: c.kind, Title: c.title, Head: int64(len(c.events)), Floor: 1, Epoch: f.epoch}, nil
}

func (f *fake) Conversations(_ context.Context, v posthorn.Viewer, q posthorn.ListQuery) (posthorn.List, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views, f.lists = append(f.views, v), append(f.lists, q)
	if f.panics != nil {
		panic(f.panics)
	}
	body := "hi"
	last := &posthorn.Event{Conv: "c1", Seq: 2, Kind: posthorn.KindMsg, Mid: "m", Sender: "ben", Cmid: "k", Body: &body, Data: []byte(`{"a": 1.50}`), At: at(2)}
	return posthorn.List{Entries: []posthorn.Entry{{Conv: "c1", Kind: posthorn.Group, Title: "t", Role: posthorn.RoleOwner, Head: 2, Floor: 1,
		Unread: 1, Last: last, LastAt: at(2), Epoch: f.epoch}}, Next: "c1", Since: "s1"}, f.err
}

func (f *fake) Members(_ context.Context, v posthorn.Viewer, conv, _ string, limit int) ([]posthorn.MemberInfo, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limits = append(f.limits, limit)
	c, err := f.seen(v, conv)
	if err != nil {
		return nil, "", err
	}
	var out []posthorn.MemberInfo
	for _, u := range c.members {
		out = append(out, posthorn.MemberInfo{User: u, Name: strings.ToUpper(u), Role: posthorn.RoleMember, Since: 1})
	}
	return out, "", nil
}

func (f *fake) SubmitAck(posthorn.Ack)      { panic("HTTP acknowledges nothing") }
func (f *fake) FirstFrame(posthorn.Session) { panic("HTTP has no session") }
func (f *fake) Typing(string, string)       { panic("HTTP does not type") }
func (f *fake) Registered(posthorn.Session) { panic("HTTP has no session") }
func (f *fake) Epoch() int64                { return f.epoch }
func (f *fake) Hello(context.Context, posthorn.Hello) (posthorn.Session, error) {
	panic("HTTP has no session")
}
func (f *fake) Confirm(context.Context, posthorn.Viewer, string, []posthorn.Pair) (posthorn.Pair, error) {
	panic("HTTP confirms nothing")
}

func (f *fake) head(conv string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.convs[conv].events))
}

func (f *fake) lastOp() *posthorn.Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops[len(f.ops)-1]
}
