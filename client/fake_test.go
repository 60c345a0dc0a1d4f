package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// fake is a server that follows docs/protocol.md from a log in memory, for one user. Tests bend it by on and mute.
type fake struct {
	mu      sync.Mutex // guards what follows
	user    string
	epoch   int64
	install int64
	resumes []string // good nonces: the newest, and the one before until a frame arrives
	nonces  int
	mids    int
	convs   map[string]*fakeConv
	conns   []*fakeSocket
	seen    []wire.Frame // what clients sent, in order
	bad     int          // frames of theirs that were none
	acked   []wire.Ack
	pageCap int  // events in a page; 0: as asked
	quiet   bool // no pushes
	hbMS    int64

	bell chan struct{} // closed and replaced at every frame and every connection's end

	on   func(*fakeSocket, wire.Frame) bool // true: dealt with, nothing more is done
	mute func(wire.Frame) bool              // true: this frame of the server is lost
}

type fakeConv struct {
	name      string
	events    []posthorn.Event // seq 1..
	hidden    map[int64]bool
	floor     int64
	start     int64
	delivered int64
	acked     bool
	opened    string // cmid of the open
}

type fakeSocket struct {
	f       *fake
	ws      *websocket.Conn
	out     chan wire.Frame
	install int64
	epoch   int64 // in which the connection lives
	greeted bool
	subbed  bool
	quit    context.CancelFunc
}

func newFake() *fake {
	return &fake{user: "ann", epoch: 1, convs: map[string]*fakeConv{}, hbMS: 25_000, bell: make(chan struct{})}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{subprotocol}})
	if err != nil {
		return
	}
	ws.SetReadLimit(1 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	s := &fakeSocket{f: f, ws: ws, out: make(chan wire.Frame, 4096), quit: cancel}
	f.mu.Lock()
	f.conns = append(f.conns, s)
	f.mu.Unlock()
	var writing sync.WaitGroup
	writing.Go(func() { s.write(ctx) })
	for {
		_, raw, err := ws.Read(ctx)
		if err != nil {
			break
		}
		s.take(raw)
	}
	cancel()
	_ = ws.CloseNow()
	writing.Wait()
	f.mu.Lock()
	f.conns = slices.DeleteFunc(f.conns, func(c *fakeSocket) bool { return c == s })
	f.ring()
	f.mu.Unlock()
}

// ring wakes until; f.mu is held.
func (f *fake) ring() {
	close(f.bell)
	f.bell = make(chan struct{})
}

// until waits for something that clients do; ok is asked with f.mu held.
func (f *fake) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		f.mu.Lock()
		done, bell := ok(), f.bell
		f.mu.Unlock()
		if done {
			return
		}
		select {
		case <-bell:
		case <-limit:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (s *fakeSocket) write(ctx context.Context) {
	for {
		select {
		case fr := <-s.out:
			if s.ws.Write(ctx, websocket.MessageText, wire.Append(nil, fr)) != nil {
				return
			}
			if b, ok := fr.(*wire.Bye); ok {
				_ = s.ws.Close(websocket.StatusCode(b.Code.ByeStatus()), string(b.Code))
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// say queues a frame; f.mu is held.
func (s *fakeSocket) say(fr wire.Frame) {
	if s.f.mute == nil || !s.f.mute(fr) {
		s.out <- fr
	}
}

func (s *fakeSocket) refuse(rid string, code posthorn.Code, msg string) {
	s.say(&wire.Error{RID: rid, Code: code, Msg: msg})
}

func (s *fakeSocket) take(raw []byte) {
	f := s.f
	f.mu.Lock()
	defer f.mu.Unlock()
	fr, err := wire.Decode(raw, posthorn.DefaultLimits())
	if err != nil {
		f.bad++
		e := posthorn.AsError(err)
		rid := ""
		if fe, ok := err.(*wire.FrameError); ok {
			rid = fe.RID
		}
		s.refuse(rid, e.Code, e.Msg)
		return
	}
	f.seen = append(f.seen, fr)
	defer f.ring()
	if s.greeted && s.epoch != f.epoch {
		s.quit() // a bye that was lost does not let it live on
		return
	}
	if f.on != nil && f.on(s, fr) {
		return
	}
	f.serve(s, fr)
}

// serve answers as the protocol says; f.mu is held.
func (f *fake) serve(s *fakeSocket, fr wire.Frame) {
	if h, ok := fr.(*wire.Hello); ok {
		f.hello(s, h)
		return
	}
	if !s.greeted {
		s.refuse(ridOf(fr), posthorn.CodeUnauthenticated, "hello first")
		return
	}
	f.resumes = f.resumes[len(f.resumes)-1:]
	if s.install < f.install {
		s.say(&wire.Bye{Code: posthorn.CodeStaleInstall})
		return
	}
	switch fr := fr.(type) {
	case *wire.Sub:
		s.subbed = true
		out := &wire.Subbed{RID: fr.RID}
		for _, c := range f.sorted() {
			if c.name <= fr.After {
				continue
			}
			if len(out.Convs) == 50 {
				out.Next = out.Convs[49].Conv
				break
			}
			out.Convs = append(out.Convs, f.entry(c))
		}
		s.say(out)
	case *wire.Ping:
		s.say(&wire.Pong{RID: fr.RID})
	case *wire.Send:
		f.write(s, fr.RID, fr.Conv, fr.Cmid, posthorn.Event{Kind: posthorn.KindMsg, Body: fr.Body, Data: fr.Data, ReplyTo: fr.ReplyTo})
	case *wire.Change:
		kind := posthorn.KindLeave
		if fr.T == "add" {
			kind = posthorn.KindJoin
		}
		f.write(s, fr.RID, fr.Conv, fr.Cmid, posthorn.Event{Kind: kind, Data: []byte(fmt.Sprintf(`{"users":%q}`, fr.Users))})
	case *wire.Open:
		f.open(s, fr)
	default:
		f.read(s, fr)
	}
}

func (f *fake) read(s *fakeSocket, fr wire.Frame) {
	var name string
	switch fr := fr.(type) {
	case *wire.Ack:
		name = fr.Conv
	case *wire.Sync:
		name = fr.Conv
	case *wire.History:
		name = fr.Conv
	case *wire.Members:
		name = fr.Conv
	case *wire.Confirm:
		name = fr.Conv
	}
	c := f.convs[name]
	if c == nil {
		s.refuse(ridOf(fr), posthorn.CodeNotMember, "not a member")
		return
	}
	switch fr := fr.(type) {
	case *wire.Ack:
		f.acked = append(f.acked, *fr)
		if fr.Seq > c.head() {
			if fr.RID != "" {
				s.refuse(fr.RID, posthorn.CodeCursorAhead, fmt.Sprintf("seq=%d head=%d", fr.Seq, c.head()))
			}
			return
		}
		c.delivered, c.acked = max(c.delivered, fr.Seq), true
		s.say(&wire.Acked{RID: fr.RID, Conv: c.name, Delivered: c.delivered})
	case *wire.Sync:
		f.sync(s, c, fr)
	case *wire.History:
		p := posthorn.Page{Conv: c.name, Head: c.head(), Floor: c.floor, Epoch: f.epoch}
		for seq := min(fr.Before-1, c.head()); seq > 0 && len(p.Events) < max(fr.Limit, 1); seq-- {
			p.Events = append(p.Events, c.events[seq-1])
		}
		s.say(&wire.Page{RID: fr.RID, Page: p})
	case *wire.Members:
		s.say(&wire.MemberList{RID: fr.RID, Conv: c.name, Members: []posthorn.MemberInfo{{User: f.user, Role: posthorn.RoleOwner, Since: 1}}})
	case *wire.Confirm:
		out := &wire.Confirmed{RID: fr.RID, Conv: c.name}
		for _, p := range fr.Pairs {
			if p.Seq <= c.head() && c.events[p.Seq-1].Mid == p.Mid && p.Seq > out.Seq {
				out.Seq, out.Mid = p.Seq, p.Mid
			}
		}
		s.say(out)
	}
}

func (f *fake) hello(s *fakeSocket, h *wire.Hello) {
	if h.Token != "good" {
		s.refuse(h.RID, posthorn.CodeUnauthenticated, "bad token")
		return
	}
	switch {
	case h.Install == nil, *h.Install > f.install:
		f.install++
		f.fresh()
	case *h.Install < f.install:
		s.refuse(h.RID, posthorn.CodeStaleInstall, "a newer install exists")
		return
	case h.Resume != "" && !slices.Contains(f.resumes, h.Resume):
		f.install++
		f.fresh()
	}
	for _, o := range f.conns {
		if o != s && o.greeted {
			o.say(&wire.Bye{Code: posthorn.CodeReplaced})
		}
	}
	f.nonces++
	nonce := fmt.Sprintf("nonce-%d", f.nonces)
	if len(f.resumes) > 0 && h.Resume != "" {
		f.resumes = []string{h.Resume, nonce}
	} else {
		f.resumes = []string{nonce}
	}
	s.greeted, s.install, s.epoch = true, f.install, f.epoch
	s.say(&wire.Welcome{RID: h.RID, User: f.user, Device: h.Device, InstallEpoch: f.install, Resume: nonce, HeartbeatMS: f.hbMS, MaxFrame: 256 << 10, Gateway: "g1", Epoch: f.epoch})
}

// fresh starts the device anew.
func (f *fake) fresh() {
	for _, c := range f.convs {
		c.start, c.delivered, c.acked = 0, 0, false
	}
	f.resumes = nil
}

func (f *fake) sync(s *fakeSocket, c *fakeConv, fr *wire.Sync) {
	after, limit := fr.After, fr.Limit
	if fr.Tail > 0 {
		if !c.acked {
			c.start = max(c.start, c.head()-int64(fr.Tail))
		}
		after = c.start
	}
	if after > c.head() {
		s.refuse(fr.RID, posthorn.CodeCursorAhead, fmt.Sprintf("seq=%d head=%d", after, c.head()))
		return
	}
	if f.pageCap > 0 {
		limit = min(limit, f.pageCap)
	}
	p := posthorn.Page{Conv: c.name, Start: c.start, Head: c.head(), Floor: c.floor, Upto: after, Epoch: f.epoch}
	if after < c.floor-1 {
		p.Truncated, after = true, c.floor-1
	}
	for seq := after + 1; seq <= c.head(); seq++ {
		if c.hidden[seq] {
			p.Skip = append(p.Skip, [2]int64{seq, seq})
		} else if len(p.Events) == limit {
			p.More = true
			break
		} else {
			p.Events = append(p.Events, c.events[seq-1])
		}
		p.Upto = seq
	}
	s.say(&wire.Page{RID: fr.RID, Page: p})
}

func (f *fake) write(s *fakeSocket, rid, conv, cmid string, ev posthorn.Event) {
	c := f.convs[conv]
	if c == nil {
		s.refuse(rid, posthorn.CodeNotMember, "not a member")
		return
	}
	for _, old := range c.events {
		if old.Sender == f.user && old.Cmid == cmid {
			s.say(&wire.Sent{RID: rid, Conv: conv, Seq: old.Seq, Mid: old.Mid, Dup: true, Epoch: f.epoch, At: old.At.UnixMilli()})
			return
		}
	}
	ev.Sender, ev.Cmid = f.user, cmid
	ev = f.append(c, ev)
	s.say(&wire.Sent{RID: rid, Conv: conv, Seq: ev.Seq, Prev: c.prev(ev.Seq), Mid: ev.Mid, Epoch: f.epoch, At: ev.At.UnixMilli()})
	f.pushTo(c, ev.Seq, s)
}

func (f *fake) open(s *fakeSocket, fr *wire.Open) {
	for _, c := range f.convs {
		if c.opened == fr.Cmid {
			s.say(&wire.Opened{RID: fr.RID, Conv: c.name, Head: c.head(), Dup: true})
			return
		}
	}
	c := f.conv(fmt.Sprintf("conv-%d", len(f.convs)+1))
	c.opened = fr.Cmid
	f.append(c, posthorn.Event{Kind: posthorn.KindOpen, Sender: f.user, Cmid: fr.Cmid})
	s.say(&wire.Opened{RID: fr.RID, Conv: c.name, Head: 1})
}

func (f *fake) append(c *fakeConv, ev posthorn.Event) posthorn.Event {
	f.mids++
	ev.Conv, ev.Seq, ev.Mid, ev.At = c.name, c.head()+1, fmt.Sprintf("mid-%d-%d", f.epoch, f.mids), time.UnixMilli(1_000_000+int64(f.mids)).UTC()
	c.events = append(c.events, ev)
	return ev
}

func (f *fake) pushTo(c *fakeConv, seq int64, but *fakeSocket) {
	if f.quiet || c.hidden[seq] {
		return
	}
	for _, s := range f.conns {
		if s != but && s.subbed && s.epoch == f.epoch {
			s.say(&wire.Event{Prev: c.prev(seq), Ev: c.events[seq-1]})
		}
	}
}

func (f *fake) sorted() []*fakeConv {
	var all []*fakeConv
	for _, c := range f.convs {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *fakeConv) int { return slices.Compare([]byte(a.name), []byte(b.name)) })
	return all
}

func (f *fake) conv(name string) *fakeConv {
	c := f.convs[name]
	if c == nil {
		c = &fakeConv{name: name, hidden: map[int64]bool{}}
		f.convs[name] = c
	}
	return c
}

func (f *fake) entry(c *fakeConv) posthorn.Entry {
	return posthorn.Entry{Conv: c.name, Kind: posthorn.Group, Head: c.head(), Floor: c.floor, Start: c.start, Delivered: c.delivered, Epoch: f.epoch}
}

func (c *fakeConv) head() int64 { return int64(len(c.events)) }

func (c *fakeConv) prev(seq int64) int64 {
	for seq--; seq > 0 && c.hidden[seq]; seq-- {
	}
	return seq
}

// What tests do to it.

// post has somebody else say something n times.
func (f *fake) post(conv string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.say(conv, n)
}

// say is post for who holds the lock.
func (f *fake) say(conv string, n int) {
	c := f.conv(conv)
	for range n {
		body := fmt.Sprintf("%s %d", conv, c.head()+1)
		ev := f.append(c, posthorn.Event{Kind: posthorn.KindMsg, Sender: "bob", Cmid: fmt.Sprintf("bob-%d", f.mids), Body: &body})
		f.pushTo(c, ev.Seq, nil)
	}
}

// each speaks to every subscribed socket.
func (f *fake) each(fr wire.Frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.conns {
		if s.subbed {
			s.say(fr)
		}
	}
}

// cut ends every connection without a word.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.conns {
		s.quit()
	}
}

// rewind is a restore from a dump: the log ends at head, under a new epoch.
func (f *fake) rewind(conv string, head int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.convs[conv]
	c.events, c.delivered, c.acked = c.events[:head], 0, false
	f.epoch += 1000
	for _, s := range f.conns {
		s.say(&wire.Bye{Code: posthorn.CodeNewEpoch})
	}
}

func (f *fake) locked(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

// acks gives the confirmed seqs of a conversation, in order.
func (f *fake) acks(conv string) []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []int64
	for _, a := range f.acked {
		if a.Conv == conv {
			out = append(out, a.Seq)
		}
	}
	return out
}

// log gives the visible events of a conversation.
func (f *fake) log(conv string) []posthorn.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.convs[conv]
	var out []posthorn.Event
	for _, ev := range c.events {
		if !c.hidden[ev.Seq] {
			out = append(out, ev)
		}
	}
	return out
}

// sentFrames picks what clients sent.
func sentFrames[T wire.Frame](f *fake) []T {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []T
	for _, fr := range f.seen {
		if x, ok := fr.(T); ok {
			out = append(out, x)
		}
	}
	return out
}

// pipes is a listener in memory, for a server inside of a synctest bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveFake runs the fake inside of a bubble and gives what a client needs to reach it.
func serveFake(t *testing.T, f *fake) Config {
	t.Helper()
	p := newPipes()
	srv := &http.Server{Handler: f}
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(p) })
	tr := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		f.cut()
		_ = srv.Close()
		serving.Wait()
		tr.CloseIdleConnections()
	})
	return Config{URL: "http://fake", Device: "phone", StorePath: t.TempDir() + "/store", HTTPClient: &http.Client{Transport: tr},
		Token: func(context.Context) (string, error) { return "good", nil }, unsynced: true}
}

// open opens and starts a client that is closed at the end of the test.
func open(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c
}

// held gives the contiguous log of a conversation.
func held(t *testing.T, c *Client, conv string) []posthorn.Event {
	t.Helper()
	var out []posthorn.Event
	for ev, err := range c.Events(context.Background(), conv, 0) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ev)
	}
	return out
}

// sameLog compares what a client holds with what the server has.
func sameLog(t *testing.T, c *Client, f *fake, conv string) {
	t.Helper()
	got, want := held(t, c, conv), f.log(conv)
	if fmt.Sprint(seqs(got)) != fmt.Sprint(seqs(want)) {
		t.Fatalf("%s: holds %v, want %v", conv, seqs(got), seqs(want))
	}
	for i := range got {
		if string(eventRecord(0, got[i])) != string(eventRecord(0, want[i])) {
			t.Errorf("%s %d: holds %s, want %s", conv, got[i].Seq, eventRecord(0, got[i]), eventRecord(0, want[i]))
		}
	}
}

func seqs(evs []posthorn.Event) []int64 {
	out := make([]int64, len(evs))
	for i, ev := range evs {
		out[i] = ev.Seq
	}
	return out
}

// pass lets time go by inside of a bubble, and everything that it brings about.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// waitCursor waits until a conversation is held up to seq.
func waitCursor(t *testing.T, c *Client, conv string, seq int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.WaitCursor(ctx, conv, seq); err != nil {
		cur, _, _ := c.Cursor(conv)
		t.Fatalf("%s: cursor %d, want %d: %v (state %+v)", conv, cur.Seq, seq, err, c.State())
	}
}

// send queues a message and fails the test where that is refused.
func send(t *testing.T, c *Client, conv, body string) *Pending {
	t.Helper()
	p, err := c.Send(context.Background(), conv, Message{Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// result waits for an item's answer.
func result(t *testing.T, p *Pending) (Sent, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s, err := p.Wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatal("an item was not answered")
	}
	return s, err
}
