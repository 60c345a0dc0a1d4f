package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// fakeLog is a message store in memory. Ops are carried out in the order of Submit, by one goroutine per op at most; the
// hooks stand for the database.
type fakeLog struct {
	hub *fakeHub

	onHello func(context.Context, posthorn.Hello) error
	onOp    func(*posthorn.Op) error // refuses; may not block
	hold    func(*posthorn.Op) bool  // true: the op waits for release
	onPage  func(context.Context, posthorn.PageQuery) error
	onList  func(context.Context) error
	onAck   func(posthorn.Ack) error

	pageBody string // of the one event of each page; "": no event

	mu         sync.Mutex // guards what follows
	heads      map[string]int64
	cmids      map[string]int64
	cursors    map[string]int64
	held       []*posthorn.Op
	firsts     int
	registered int
	hellos     []posthorn.Hello
	ops        int
	pages      []posthorn.PageQuery
	lists      []posthorn.ListQuery
	acks       int
	typed      []string
}

func newFakes() (*fakeLog, *fakeHub) {
	h := &fakeHub{}
	return &fakeLog{hub: h, heads: map[string]int64{}, cmids: map[string]int64{}, cursors: map[string]int64{}}, h
}

func (l *fakeLog) locked(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *fakeLog) Submit(op *posthorn.Op) {
	l.mu.Lock()
	l.ops++
	if l.hold != nil && l.hold(op) {
		l.held = append(l.held, op)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.commit(op)
}

// release carries out the oldest n ops that are held.
func (l *fakeLog) release(n int) {
	l.mu.Lock()
	n = min(n, len(l.held))
	ops := l.held[:n:n]
	l.held = append([]*posthorn.Op(nil), l.held[n:]...)
	l.mu.Unlock()
	for _, op := range ops {
		l.commit(op)
	}
}

func (l *fakeLog) waiting() (n int) {
	l.locked(func() { n = len(l.held) })
	return n
}

// commit gives the op its seq and has the hub tell it, as one step: so pushes and replies are in seq order.
func (l *fakeLog) commit(op *posthorn.Op) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if l.onOp != nil {
		if err := l.onOp(op); err != nil {
			op.Done(posthorn.Outcome{Err: err})
			return
		}
	}
	l.mu.Lock()
	key := op.Conv + "/" + op.Sender + "/" + op.Cmid
	seq, dup := l.cmids[key]
	if !dup {
		l.heads[op.Conv]++
		seq = l.heads[op.Conv]
		l.cmids[key] = seq
	}
	l.mu.Unlock()
	o := posthorn.Outcome{Conv: op.Conv, Seq: seq, Prev: seq - 1, Mid: fmt.Sprint("m", seq), Dup: dup, Epoch: 1, At: time.Now()}
	if !dup {
		l.hub.fanout(posthorn.Event{
			Conv: op.Conv, Seq: seq, Kind: op.Kind, Mid: o.Mid, Sender: op.Sender, Cmid: op.Cmid, Body: op.Body, At: o.At,
		}, op.Origin)
	}
	op.Done(o)
}

func (l *fakeLog) SubmitAck(a posthorn.Ack) {
	l.mu.Lock()
	l.acks++
	var err error
	key := a.Viewer.Device + "/" + a.Conv
	if l.onAck != nil {
		err = l.onAck(a)
	} else if head := l.heads[a.Conv]; a.Seq > head {
		err = posthorn.Errorf(posthorn.CodeCursorAhead, "seq=%d head=%d", a.Seq, head)
	}
	if err == nil {
		l.cursors[key] = max(l.cursors[key], a.Seq)
	}
	delivered := l.cursors[key]
	l.mu.Unlock()
	a.Done(delivered, err)
}

func (l *fakeLog) OpenConversation(_ context.Context, o posthorn.Open) (posthorn.Opened, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	conv := "c-" + o.Cmid
	if l.heads[conv] == 0 {
		l.heads[conv] = 1
		return posthorn.Opened{Conv: conv, Head: 1}, nil
	}
	return posthorn.Opened{Conv: conv, Head: l.heads[conv], Dup: true}, nil
}

func (l *fakeLog) Hello(ctx context.Context, h posthorn.Hello) (posthorn.Session, error) {
	l.locked(func() { l.hellos = append(l.hellos, h) })
	if l.onHello != nil {
		if err := l.onHello(ctx, h); err != nil {
			return posthorn.Session{}, err
		}
	}
	install := int64(1)
	if h.Install != nil {
		install = *h.Install
	}
	return posthorn.Session{
		Viewer: posthorn.Viewer{User: h.User, Device: h.Device, DeviceID: int64(len(h.Device)), Install: install, Epoch: 7},
		Resume: "nonce",
	}, nil
}

func (l *fakeLog) FirstFrame(posthorn.Session) { l.locked(func() { l.firsts++ }) }

func (l *fakeLog) Typing(conv, user string) {
	l.locked(func() { l.typed = append(l.typed, conv+"/"+user) })
}

func (l *fakeLog) Registered(posthorn.Session) { l.locked(func() { l.registered++ }) }

func (l *fakeLog) Conversations(ctx context.Context, _ posthorn.Viewer, q posthorn.ListQuery) (posthorn.List, error) {
	l.locked(func() { l.lists = append(l.lists, q) })
	if l.onList != nil {
		if err := l.onList(ctx); err != nil {
			return posthorn.List{}, err
		}
	}
	return posthorn.List{Entries: []posthorn.Entry{{Conv: "c", Kind: posthorn.Group}}, Since: "s"}, nil
}

func (l *fakeLog) Page(ctx context.Context, _ posthorn.Viewer, q posthorn.PageQuery) (posthorn.Page, error) {
	var head int64
	l.locked(func() { l.pages = append(l.pages, q); head = l.heads[q.Conv] })
	if l.onPage != nil {
		if err := l.onPage(ctx, q); err != nil {
			return posthorn.Page{}, err
		}
	}
	if q.After > head {
		return posthorn.Page{}, posthorn.Errorf(posthorn.CodeCursorAhead, "seq=%d head=%d", q.After, head)
	}
	p := posthorn.Page{Conv: q.Conv, Head: head, Upto: head, Epoch: 7}
	if l.pageBody != "" {
		p.Events = []posthorn.Event{{Conv: q.Conv, Seq: 1, Kind: posthorn.KindMsg, Body: &l.pageBody}}
	}
	return p, nil
}

func (l *fakeLog) Members(context.Context, posthorn.Viewer, string, string, int) ([]posthorn.MemberInfo, string, error) {
	return []posthorn.MemberInfo{{User: "ada", Role: posthorn.RoleOwner, Since: 1}}, "", nil
}

func (l *fakeLog) Confirm(_ context.Context, _ posthorn.Viewer, _ string, pairs []posthorn.Pair) (posthorn.Pair, error) {
	return pairs[0], nil
}

func (l *fakeLog) Epoch() int64 { return 7 }

// fakeHub fans out to every subscribed socket but the origin. Its lock is held while it calls a socket, as the real one's
// may be: a Socket method that blocked would stop every test.
type fakeHub struct {
	mu         sync.Mutex // guards what follows
	live       map[posthorn.Socket]bool
	subscribed map[posthorn.Socket]bool
	subs       int
	heard      []string
	behind     map[posthorn.Socket]map[string]int64
	orphans    int // subscribed or registered after Unregister
	gone       map[posthorn.Socket]bool
}

func (h *fakeHub) Register(s posthorn.Socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live == nil {
		h.live, h.subscribed, h.gone = map[posthorn.Socket]bool{}, map[posthorn.Socket]bool{}, map[posthorn.Socket]bool{}
		h.behind = map[posthorn.Socket]map[string]int64{}
	}
	for old := range h.live {
		if v := old.Viewer(); v.User == s.Viewer().User && v.Device == s.Viewer().Device {
			old.Close(posthorn.CodeReplaced)
		}
	}
	h.live[s] = true
}

func (h *fakeHub) Unregister(s posthorn.Socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.live, s)
	delete(h.subscribed, s)
	h.gone[s] = true
}

func (h *fakeHub) Subscribe(_ context.Context, s posthorn.Socket) (func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs++
	if h.gone[s] {
		h.orphans++
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.gone[s] {
			h.orphans++
		}
		h.subscribed[s] = true
	}, nil
}

func (h *fakeHub) MayType(_ posthorn.Socket, conv string) bool { return conv != "strange" }

func (h *fakeHub) Heard(_ posthorn.Socket, conv string, seq int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, fmt.Sprint(conv, ":", seq))
}

// fanout is called with the lock held.
func (h *fakeHub) fanout(ev posthorn.Event, origin posthorn.Socket) {
	frame := wire.AppendEvent(nil, &ev, ev.Seq-1)
	for s := range h.subscribed {
		if s == origin {
			continue
		}
		if !s.PushEvent(frame, ev.Conv, ev.Seq) {
			if h.behind[s] == nil {
				h.behind[s] = map[string]int64{}
			}
			h.behind[s][ev.Conv] = ev.Seq
			s.PushHint(ev.Conv, ev.Seq, 0, "overflow")
		}
	}
}

// say commits an event that no socket sent.
func (l *fakeLog) say(conv, body string) {
	l.commit(&posthorn.Op{Kind: posthorn.KindMsg, Conv: conv, Sender: "server", Cmid: fmt.Sprint(time.Now().UnixNano(), len(body)), Body: &body,
		Done: func(posthorn.Outcome) {}})
}

// fakeAuth takes tokens "user" or "user/device"; "bad…" is no good.
type fakeAuth struct{ install *int64 }

func (a fakeAuth) Device(_ context.Context, token string) (user, device string, install *int64, err error) {
	if strings.HasPrefix(token, "bad") {
		return "", "", nil, posthorn.Errorf(posthorn.CodeUnauthenticated, "the token is no good")
	}
	user, device, _ = strings.Cut(token, "/")
	return user, device, a.install, nil
}
