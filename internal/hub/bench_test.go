package hub

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/posthorn/posthorn"
)

// sink is a socket that counts.
type sink struct {
	viewer posthorn.Viewer
	pushed int
}

func (s *sink) Viewer() posthorn.Viewer                    { return s.viewer }
func (s *sink) PushEvent([]byte, string, int64) bool       { s.pushed++; return true }
func (s *sink) PushConv(posthorn.Entry) bool               { return true }
func (s *sink) PushTyping(string, string) bool             { return true }
func (s *sink) PushHint(string, int64, int64, string) bool { return true }
func (s *sink) Close(posthorn.Code)                        {}

// idle is a loader of groups whose members are known beforehand.
type idle struct{ convs map[string][]string } // by user

func (l idle) LoadDevice(_ context.Context, v posthorn.Viewer) ([]posthorn.View, error) {
	var views []posthorn.View
	for _, conv := range l.convs[v.User] {
		views = append(views, posthorn.View{
			Conv: conv, Kind: posthorn.Group, User: v.User, Head: 1, Visible: 1,
			Periods: posthorn.Periods{{From: 1, SeesFrom: 1, Role: posthorn.RoleMember}},
		})
	}
	return views, nil
}

func (idle) LoadUsers(context.Context, string, []string) ([]posthorn.View, error) { return nil, nil }
func (idle) Entry(context.Context, posthorn.Viewer, string) (posthorn.Entry, error) {
	return posthorn.Entry{}, nil
}
func (idle) WakeTail() {}

func sinksConv(g int) string { return fmt.Sprintf("conv-%d", g) }

// crowd makes a hub with groups of size members, each user with a socket.
func crowd(tb testing.TB, groups, size int) (*Hub, []*sink) {
	tb.Helper()
	l := idle{convs: map[string][]string{}}
	for g := range groups {
		for i := range size {
			u := fmt.Sprintf("user-%d", g*size+i)
			l.convs[u] = append(l.convs[u], sinksConv(g))
		}
	}
	limits := posthorn.DefaultLimits()
	h := New(Config{Loader: l, Limits: limits, Encode: func(ev *posthorn.Event, prev int64) []byte {
		return binary.BigEndian.AppendUint64(make([]byte, 0, 256), uint64(prev)) // the one allocation of an event
	}})
	sinks := make([]*sink, groups*size)
	for i := range sinks {
		s := &sink{viewer: posthorn.Viewer{User: fmt.Sprintf("user-%d", i), DeviceID: int64(i + 1)}}
		sinks[i] = s
		h.Register(s)
		activate, err := h.Subscribe(context.Background(), s)
		if err != nil {
			tb.Fatal(err)
		}
		activate()
	}
	return h, sinks
}

// BenchmarkDeliver fans batches of 64 messages out to 64 groups of 8, from memory with their ops, and acks them. allocs/push
// is what counts: with one frame for 8 receivers it should be far below 1.
func BenchmarkDeliver(b *testing.B) {
	const groups, size = 64, 8
	h, sinks := crowd(b, groups, size)
	h.mu.Lock()
	h.born = h.born.Add(-h.cfg.Limits.HoldGap) // followed for long enough that nothing is remembered
	h.mu.Unlock()
	answered := 0
	body := "a message of ordinary length, as people write them"
	batch := make([]posthorn.Committed, groups)
	ops := make([]posthorn.Op, groups)
	for g := range batch {
		from := sinks[g*size]
		conv := sinksConv(g)
		ops[g] = posthorn.Op{Conv: conv, Sender: from.viewer.User, DeviceID: from.viewer.DeviceID, Origin: from, Done: func(posthorn.Outcome) { answered++ }}
		batch[g] = posthorn.Committed{Op: &ops[g], Event: posthorn.Event{Conv: conv, Seq: 1, Kind: posthorn.KindMsg, Sender: from.viewer.User, Body: &body}}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ReportAllocs()
	for b.Loop() {
		for g := range batch {
			batch[g].Event.Seq++
		}
		h.Deliver(batch)
		for i, s := range sinks {
			h.Delivered(s.viewer.DeviceID, batch[i/size].Event.Conv, batch[0].Event.Seq)
		}
	}
	runtime.ReadMemStats(&after)
	pushed := answered
	for _, s := range sinks {
		pushed += s.pushed
	}
	if pushed != b.N*groups*size {
		b.Fatalf("%d pushes and answers, want %d", pushed, b.N*groups*size)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(pushed), "ns/push")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(pushed), "allocs/push")
}

// BenchmarkIdle reports what a subscribed socket in 20 groups costs while nothing happens.
func BenchmarkIdle(b *testing.B) {
	const sockets, groups = 2000, 20
	l := idle{convs: map[string][]string{}}
	for i := range sockets {
		for g := range groups {
			u := fmt.Sprintf("user-%d", i)
			l.convs[u] = append(l.convs[u], fmt.Sprintf("conv-%d", (i*groups+g)%(sockets*groups/8)))
		}
	}
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		h := New(Config{Loader: l, Limits: posthorn.DefaultLimits()})
		for i := range sockets {
			s := &sink{viewer: posthorn.Viewer{User: fmt.Sprintf("user-%d", i), DeviceID: int64(i + 1)}}
			h.Register(s)
			activate, err := h.Subscribe(context.Background(), s)
			if err != nil {
				b.Fatal(err)
			}
			activate()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/sockets, "B/socket")
		runtime.KeepAlive(h)
	}
}
