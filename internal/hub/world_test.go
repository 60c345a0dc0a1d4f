package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/posthorn/posthorn"
)

// world is the log and what the database knows; it fills posthorn.Loader. What it says is the truth that the hub is
// judged by.
type world struct {
	mu      sync.Mutex
	convs   map[string]*logbook
	cursors map[string]int64 // device/conv → delivered; absent: no row

	gated bool    // calls wait at their gates
	calls []*call // that wait
	fail  error   // what calls answer
	wakes int
	loads int
	views map[int64][]posthorn.View  // what LoadDevice last gave a device,
	snaps map[int64]map[string]int64 // and the heads of all conversations in that snapshot
	story []string
}

// tell writes the story of a test, which is shown when it fails.
func (w *world) tell(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

type logbook struct {
	id      string
	kind    posthorn.ConvKind
	events  []posthorn.Event
	periods map[string]posthorn.Periods
}

func newWorld() *world {
	return &world{
		convs: map[string]*logbook{}, cursors: map[string]int64{}, views: map[int64][]posthorn.View{}, snaps: map[int64]map[string]int64{},
	}
}

// open makes a conversation whose first user is the owner.
func (w *world) open(id string, kind posthorn.ConvKind, users ...string) posthorn.Event {
	w.mu.Lock()
	w.convs[id] = &logbook{id: id, kind: kind, periods: map[string]posthorn.Periods{}}
	w.mu.Unlock()
	return w.commit(id, posthorn.KindOpen, users[0], users...)
}

// commit appends an event.
func (w *world) commit(conv string, kind posthorn.Kind, sender string, users ...string) posthorn.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	lb := w.convs[conv]
	ev := posthorn.Event{
		Conv: conv, Seq: int64(len(lb.events)) + 1, Kind: kind, Sender: sender, Users: users,
		Mid: fmt.Sprintf("%s-%d", conv, len(lb.events)+1), At: time.Now(),
	}
	lb.events = append(lb.events, ev)
	w.tell("%s commits %s %s %v", sender, kind, ev.Mid, users)
	for _, u := range users {
		ps := slices.Clone(lb.periods[u])
		switch kind {
		case posthorn.KindOpen, posthorn.KindJoin:
			role := posthorn.RoleMember
			if (kind == posthorn.KindOpen && u == sender) || ps.Role() == posthorn.RoleOwner {
				role = posthorn.RoleOwner // for good, so that what they may see does not change
			}
			ps = append(ps, posthorn.Period{From: ev.Seq, SeesFrom: ev.Seq, Role: role})
		case posthorn.KindLeave:
			ps[len(ps)-1].To = ev.Seq
		}
		lb.periods[u] = ps
	}
	return ev
}

// sees tells whether the user may see the event, V1 as the log has it.
func (lb *logbook) sees(user string, seq int64) bool {
	ps := lb.periods[user]
	return ps.Sees(seq) && lb.events[seq-1].VisibleIn(lb.kind, user, ps.Role())
}

// before is the previous seq that the user may see.
func (lb *logbook) before(user string, seq int64) int64 {
	for s := seq - 1; s > 0; s-- {
		if lb.sees(user, s) {
			return s
		}
	}
	return 0
}

func (lb *logbook) head() int64 { return int64(len(lb.events)) }

// visible is the user's visible head.
func (lb *logbook) visible(user string) int64 { return lb.before(user, lb.head()+1) }

var errAway = errors.New("the database is away")

// away has every call fail.
func (w *world) away(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = nil
	if yes {
		w.fail = errAway
	}
}

// gate has calls wait at their gates from now on; see step.
func (w *world) gate(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gated = yes
}

func (w *world) view(lb *logbook, user string) posthorn.View {
	return posthorn.View{
		Conv: lb.id, Kind: lb.kind, User: user, Head: lb.head(), Visible: lb.visible(user), Periods: slices.Clone(lb.periods[user]),
	}
}

func key(device int64, conv string) string { return fmt.Sprint(device, "/", conv) }

// ack moves a cursor.
func (w *world) ack(device int64, conv string, seq int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cursors[key(device, conv)] = max(w.cursors[key(device, conv)], seq)
	return w.cursors[key(device, conv)]
}

// call is a call of the loader that is under way. Opened once it takes its snapshot, opened again it returns.
type call struct {
	name  string // gives calls an order that does not depend on the scheduler
	gate  chan struct{}
	taken bool
}

func (w *world) pass(ctx context.Context, c *call) error {
	if c == nil {
		return nil
	}
	select {
	case <-c.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *world) enter(ctx context.Context, name ...any) (*call, error) {
	w.mu.Lock()
	w.loads++
	var c *call
	if w.gated {
		c = &call{name: fmt.Sprint(name...), gate: make(chan struct{}, 2)}
		w.calls = append(w.calls, c)
		slices.SortStableFunc(w.calls, func(a, b *call) int { return cmp.Compare(a.name, b.name) })
	}
	w.mu.Unlock()
	return c, w.pass(ctx, c)
}

// step lets the i-th call that waits go on to its next gate.
func (w *world) step(i int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) == 0 {
		return false
	}
	i %= len(w.calls)
	c := w.calls[i]
	w.tell("load %s goes on, snapshot taken: %v", c.name, c.taken)
	if c.taken {
		w.calls = slices.Delete(w.calls, i, i+1)
	}
	c.taken = true
	c.gate <- struct{}{}
	return true
}

func (w *world) LoadDevice(ctx context.Context, v posthorn.Viewer) ([]posthorn.View, error) {
	c, err := w.enter(ctx, v.DeviceID)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	err = w.fail
	var views []posthorn.View
	snap := map[string]int64{}
	for _, lb := range w.convs {
		snap[lb.id] = lb.head()
		x := w.view(lb, v.User)
		x.Delivered, x.HasCursor = w.cursors[key(v.DeviceID, lb.id)], false
		_, x.HasCursor = w.cursors[key(v.DeviceID, lb.id)]
		if x.Periods.Present() || (len(x.Periods) > 0 && x.Delivered < x.Visible) {
			views = append(views, x)
		}
	}
	w.mu.Unlock()
	if e := w.pass(ctx, c); e != nil {
		return nil, e
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views[v.DeviceID], w.snaps[v.DeviceID] = views, snap
	return slices.Clone(views), err
}

func (w *world) LoadUsers(ctx context.Context, conv string, users []string) ([]posthorn.View, error) {
	c, err := w.enter(ctx, conv, users)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	err = w.fail
	var views []posthorn.View
	for _, u := range users {
		if x := w.view(w.convs[conv], u); len(x.Periods) > 0 {
			views = append(views, x)
		}
	}
	w.mu.Unlock()
	if e := w.pass(ctx, c); e != nil {
		return nil, e
	}
	return views, err
}

func (w *world) Entry(ctx context.Context, v posthorn.Viewer, conv string) (posthorn.Entry, error) {
	c, err := w.enter(ctx, conv, v.DeviceID)
	if err != nil {
		return posthorn.Entry{}, err
	}
	w.mu.Lock()
	err = w.fail
	lb := w.convs[conv]
	e := posthorn.Entry{Conv: conv, Kind: lb.kind, Head: lb.visible(v.User), Delivered: w.cursors[key(v.DeviceID, conv)]}
	e.Left = !lb.periods[v.User].Present()
	w.mu.Unlock()
	if e := w.pass(ctx, c); e != nil {
		return posthorn.Entry{}, e
	}
	return e, err
}

func (w *world) WakeTail() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wakes++
}
