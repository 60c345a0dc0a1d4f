package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// listener is a Fanout that wants everything, answers senders at once and remembers what it was given.
type listener struct {
	mu     sync.Mutex
	events map[string]map[int64]posthorn.Event
	heads  map[string]int64
	news   chan struct{}
	moved  map[string]int64

	replaced map[int64]int64
	devices  []posthorn.Viewer
	claims   []posthorn.Claim
	epochs   []int64
	typing   []string
	wrong    int
	seen     int // claims of the last Correct
}

func newListener() *listener {
	return &listener{events: map[string]map[int64]posthorn.Event{}, heads: map[string]int64{}, news: make(chan struct{}, 1), moved: map[string]int64{}, replaced: map[int64]int64{}}
}

func (l *listener) Deliver(d []posthorn.Committed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range d {
		conv := l.events[c.Event.Conv]
		if conv == nil {
			conv = map[int64]posthorn.Event{}
			l.events[c.Event.Conv] = conv
		}
		conv[c.Event.Seq] = c.Event
		for conv[l.heads[c.Event.Conv]+1].Seq != 0 {
			l.heads[c.Event.Conv]++
		}
		if c.Op != nil {
			c.Op.Done(posthorn.Outcome{Conv: c.Event.Conv, Seq: c.Event.Seq, Prev: c.Prev, Mid: c.Event.Mid, Epoch: c.Epoch, At: c.Event.At})
		}
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *listener) Wants(string, []string) bool { return true }

func (l *listener) Heads() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	heads := map[string]int64{}
	for c, h := range l.heads {
		heads[c] = h
	}
	return heads
}

func (l *listener) Delivered(device int64, conv string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved[fmt.Sprint(device, "/", conv)] = n
}

func (l *listener) Revoked(int64) {}

func (l *listener) Typing(conv, user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.typing = append(l.typing, conv+"/"+user)
}

func (l *listener) Replaced(device, generation int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replaced[device] = max(l.replaced[device], generation)
}

func (l *listener) Devices() []posthorn.Viewer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.devices
}

func (l *listener) NewEpoch(epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs = append(l.epochs, epoch)
	l.events, l.heads = map[string]map[int64]posthorn.Event{}, map[string]int64{}
}

func (l *listener) Behind(conv string, head int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if have, ok := l.heads[conv]; ok && have < head {
		return have + 1
	}
	return 0
}

func (l *listener) Unaware(conv string, users []string, _ int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.heads[conv]
	return !known && len(users) > 0
}

func (l *listener) Caught(int) []posthorn.Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.claims
}

func (l *listener) Correct(stored []posthorn.Claim) (wrong int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = len(stored)
	for _, c := range stored {
		if c.Delivered < c.Head {
			wrong++
		}
	}
	l.wrong += wrong
	return wrong
}

// awaitHead waits until every event up to head has come.
func (l *listener) awaitHead(t *testing.T, conv string, head int64) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		l.mu.Lock()
		have := l.heads[conv]
		l.mu.Unlock()
		if have >= head {
			return
		}
		select {
		case <-l.news:
		case <-deadline:
			t.Fatalf("the tail brought %d of %d events", have, head)
		}
	}
}

// open starts a store on the database.
func open(t *testing.T, url string, edit ...func(*store.Config)) (*store.Store, *listener) {
	t.Helper()
	l := newListener()
	cfg := store.Config{URL: url, Limits: posthorn.DefaultLimits(), Fanout: l}
	for _, f := range edit {
		f(&cfg)
	}
	s, err := store.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		s.Stop(ctx)
	})
	return s, l
}

// do submits an op and waits for what becomes of it.
func do(t *testing.T, s *store.Store, op posthorn.Op) posthorn.Outcome {
	t.Helper()
	got := make(chan posthorn.Outcome, 1)
	op.Done = func(o posthorn.Outcome) { got <- o }
	s.Submit(&op)
	select {
	case o := <-got:
		return o
	case <-time.After(30 * time.Second):
		t.Fatalf("no outcome for %s %s", op.Kind, op.Cmid)
		return posthorn.Outcome{}
	}
}

func msg(conv, sender, cmid, body string) posthorn.Op {
	return posthorn.Op{Kind: posthorn.KindMsg, Conv: conv, Sender: sender, DeviceID: 1, Cmid: cmid, Body: &body}
}

// people makes users.
func people(t *testing.T, url string, names ...string) {
	t.Helper()
	for _, n := range names {
		pgtest.Exec(t, url, "insert into posthorn.users (user_id) values ($1) on conflict do nothing", n)
	}
}

// group opens a group and gives its id.
func group(t *testing.T, s *store.Store, creator string, members ...string) string {
	t.Helper()
	o, err := s.OpenConversation(t.Context(), posthorn.Open{Creator: creator, Device: 1, Cmid: t.Name(), Kind: posthorn.Group, Members: members})
	if err != nil {
		t.Fatal(err)
	}
	return o.Conv
}

func code(o posthorn.Outcome) posthorn.Code {
	if o.Err == nil {
		return ""
	}
	return posthorn.AsError(o.Err).Code
}

// eventually polls a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}
