package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// Who was removed hears no more of the room and says nothing in it, on another gateway and without connecting again.
func TestB17_RemovedMember(t *testing.T) {
	here := serve(t, pgtest.URL(t))
	there := serve(t, here.url)
	ana, cy := here.connect(t, "ana", "phone"), there.connect(t, "cy", "phone")
	ask[*wire.Subbed](cy, &wire.Sub{})

	// removed has ana remove bo and go on at once, and waits until bo's gateway has brought all of it to another member.
	// The fence is a room of ana and bo: once it shows, what was written before has passed bo's gateway too.
	removed := func(t *testing.T, conv, fence string) (leave int64, after []string) {
		for i := range 20 {
			after = append(after, hiddenBody(conv, i))
		}
		leave = ask[*wire.Sent](ana, &wire.Change{T: "remove", Conv: conv, Cmid: "remove", Users: []string{"bo"}}).Seq
		for i, body := range after {
			if err := ana.Write(&wire.Send{RID: fmt.Sprint(i), Conv: conv, Cmid: fmt.Sprint("after", i), Body: &body}); err != nil {
				t.Fatal(err)
			}
		}
		frame(cy, func(ev *wire.Event) bool { return ev.Ev.Conv == conv && ev.Ev.Seq == leave+int64(len(after)) })
		ana.send(fence, "fence "+conv, "fence")
		return leave, after
	}
	outside := func(t *testing.T, bo *peer, sees *shown, conv string, leave int64, after []string) {
		t.Helper()
		body := "still here"
		bo.refused(&wire.Send{Conv: conv, Cmid: "late", Body: &body}, posthorn.CodeNotMember)
		bo.refused(&wire.Change{T: "add", Conv: conv, Cmid: "back", Users: []string{"bo"}}, posthorn.CodeNotMember)
		for _, seq := range []int64{leave + 1, leave + int64(len(after)), leave + int64(len(after)) + 1} {
			want := fmt.Sprintf("seq=%d head=%d", seq, leave)
			if e := bo.refused(&wire.Ack{Conv: conv, Seq: seq}, posthorn.CodeCursorAhead); e.Msg != want {
				t.Errorf("ack: %q, want %q", e.Msg, want)
			}
			if e := bo.refused(&wire.Sync{Conv: conv, After: seq}, posthorn.CodeCursorAhead); e.Msg != want {
				t.Errorf("sync: %q, want %q", e.Msg, want)
			}
		}
		if got, head := walk(bo, conv, 100); head != leave || got[len(got)-1] != leave {
			t.Errorf("a walk ends at %d of %d, want %d", got[len(got)-1], head, leave)
		}
		if a := ask[*wire.Acked](bo, &wire.Ack{Conv: conv, Seq: leave}); a.Delivered != leave {
			t.Errorf("%+v", a)
		}
		sees.mu.Lock()
		for _, ev := range sees.pushed {
			if ev.Ev.Conv == conv && ev.Ev.Seq > leave {
				t.Errorf("%d was pushed after the removal at %d", ev.Ev.Seq, leave)
			}
		}
		sees.mu.Unlock()
		sees.never(t, after)
	}

	t.Run("at once", func(t *testing.T) {
		bo, sees := there.watched(t, "bo", "phone")
		conv, fence := ana.group("open 1", "bo", "cy"), ana.group("fence 1", "bo")
		sending, stop := make(chan struct{}), make(chan struct{})
		go func() { // bo sends all the while
			defer close(sending)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				body := "bo's"
				if _, err := bo.Call(t.Context(), &wire.Send{Conv: conv, Cmid: fmt.Sprint("bo", i), Body: &body}); err != nil {
					if posthorn.AsError(err).Code != posthorn.CodeNotMember {
						t.Errorf("bo's send: %v", err)
					}
				}
			}
		}()
		frame(cy, func(ev *wire.Event) bool { return ev.Ev.Conv == conv && ev.Ev.Sender == "bo" })
		leave, after := removed(t, conv, fence)
		close(stop)
		<-sending
		frame(bo, func(ev *wire.Event) bool { return ev.Ev.Conv == fence && ev.Ev.Kind == posthorn.KindMsg })
		outside(t, bo, sees, conv, leave, after)
		late := pgtest.Query[int](t, here.url, "select count(*) from posthorn.events where conv_id = $1 and sender = 'bo' and seq > $2", conv, leave)
		if late > 0 {
			t.Errorf("%d messages of bo after the removal", late)
		}
	})
	t.Run("with a queue that waits", func(t *testing.T) {
		sees, look := &shown{}, make(chan struct{})
		var blind atomic.Bool
		bo := there.connectWith(t, "bo", "tablet", client.DialOptions{HTTPClient: narrow(t), Tracer: tap{
			frame: func(d client.Direction, f wire.Frame, raw []byte) {
				if d == client.In && blind.Load() {
					<-look
				}
				sees.tap().frame(d, f, raw)
			}}})
		ask[*wire.Subbed](bo, &wire.Sub{})
		conv, fence := ana.group("open 2", "bo", "cy"), ana.group("fence 2", "bo")
		frame(bo, func(ev *wire.Event) bool { return ev.Ev.Conv == conv })
		blind.Store(true)
		dropped := there.gateway.Stats().PushesDropped
		for i := 0; there.gateway.Stats().PushesDropped == dropped; i++ {
			s := ana.send(conv, fmt.Sprint("before", i), strings.Repeat("x", 60_000))
			if i%8 == 7 { // cy's own queue must not overflow
				frame(cy, func(ev *wire.Event) bool { return ev.Ev.Conv == conv && ev.Ev.Seq == s.Seq })
			}
		}
		leave, after := removed(t, conv, fence)
		blind.Store(false)
		close(look)
		poll(t, "a hint of what was dropped", func() bool {
			sees.mu.Lock()
			defer sees.mu.Unlock()
			return strings.Contains(sees.raw.String(), `"t":"hint"`)
		})
		outside(t, bo, sees, conv, leave, after)
	})
}

// narrow is a client whose sockets take in little before they are read.
func narrow(t *testing.T) *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(16 << 10)
		}
		return c, err
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}
