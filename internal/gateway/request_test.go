package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

// TestB01_NULOnTheSocket: U+0000 in any string is refused by name, nothing reaches the log, the socket stays up, and the
// next good send gets head+1.
func TestB01_NULOnTheSocket(t *testing.T) {
	h := build(t, limits())
	for _, device := range []string{`a\u0000b`, `\u0000`} {
		c := h.connect(false, false)
		c.say(`{"t":"hello","rid":"h","token":"ada/x","device":"%s"}`, device)
		c.wantError("BAD_FRAME", "h")
		c.login("ada/x")
		c.up("1")
	}
	c := h.enter("ada/d")
	for i, f := range []string{
		`{"t":"send","rid":"%s","conv":"c","cmid":"m","body":"a\u0000b"}`,
		`{"t":"send","rid":"%s","conv":"c\u0000","cmid":"m","body":"a"}`,
		`{"t":"send","rid":"%s","conv":"c","cmid":"m\u0000","body":"a"}`,
		`{"t":"send","rid":"%s","conv":"c","cmid":"m","data":{"x":["\u0000"]}}`,
		`{"t":"send","rid":"%s","conv":"c","cmid":"m","data":{"\u0000":1}}`,
		`{"t":"add","rid":"%s","conv":"c","cmid":"m","users":["a","\u0000"]}`,
		`{"t":"open","rid":"%s","cmid":"m","kind":"group","members":["b"],"title":"\u0000"}`,
		`{"t":"ack","rid":"%s","conv":"\u0000","seq":1}`,
		`{"t":"sync","rid":"%s","conv":"\u0000","after":0}`,
		`{"t":"members","rid":"%s","conv":"c","after":"\u0000"}`,
	} {
		rid := fmt.Sprint("r", i)
		c.say(f, rid)
		if f := c.wantError("BAD_FRAME", rid); strings.Contains(f.Msg, "SQL") {
			t.Error(f.raw)
		}
	}
	c.say(`{"t":"send","rid":"r\u0000","conv":"c","cmid":"m","body":"a"}`)
	c.wantError("BAD_FRAME", "")
	if h.log.ops != 0 {
		t.Errorf("%d ops reached the log", h.log.ops)
	}
	c.say(`{"t":"send","rid":"ok","conv":"c","cmid":"m","body":"fine"}`)
	if f := c.want("sent"); f.Seq != 1 || f.RID != "ok" {
		t.Errorf("got %s", f.raw)
	}
}

// TestB14_CursorValuesOnTheSocket: nothing but a plain integer in range is a cursor, and every answer names its request.
func TestB14_CursorValuesOnTheSocket(t *testing.T) {
	h := build(t, limits())
	h.log.heads["c"] = 7
	c := h.enter("ada/d")
	n := 0
	ask := func(field, format string, code posthorn.Code) {
		t.Helper()
		n++
		rid := fmt.Sprint("r", n)
		c.say("%s", strings.Replace(format, "RID", rid, 1))
		f, err := c.read()
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if f.RID != rid || (code == "") != (f.T != "error") || f.Code != code {
			t.Errorf("%s: %s", format, f.raw)
		}
	}
	bad := []string{"9223372036854775807", "9223372036854775808", "9007199254740992", "-1", "-0", "null", `"7"`, "7.0", "7e0", "1e3", "true", "[]", "{}"}
	for _, v := range bad {
		ask("seq", `{"t":"ack","rid":"RID","conv":"c","seq":`+v+`}`, "BAD_FRAME")
		ask("after", `{"t":"sync","rid":"RID","conv":"c","after":`+v+`}`, "BAD_FRAME")
		ask("before", `{"t":"history","rid":"RID","conv":"c","before":`+v+`}`, "BAD_FRAME")
	}
	for _, v := range append(bad[3:], "0") {
		ask("limit", `{"t":"sync","rid":"RID","conv":"c","after":0,"limit":`+v+`}`, "BAD_FRAME")
	}
	ask("seq", `{"t":"ack","rid":"RID","conv":"c"}`, "BAD_FRAME")
	ask("after", `{"t":"sync","rid":"RID","conv":"c"}`, "BAD_FRAME")
	ask("seq", `{"t":"ack","rid":"RID","conv":"c","seq":8}`, "CURSOR_AHEAD")
	ask("seq", `{"t":"ack","rid":"RID","conv":"c","seq":9007199254740991}`, "CURSOR_AHEAD")
	ask("after", `{"t":"sync","rid":"RID","conv":"c","after":8}`, "CURSOR_AHEAD")
	if h.log.cursors["d/c"] != 0 {
		t.Errorf("the cursor moved to %d", h.log.cursors["d/c"])
	}
	ask("seq", `{"t":"ack","rid":"RID","conv":"c","seq":7}`, "")
	ask("limit", `{"t":"sync","rid":"RID","conv":"c","after":0,"limit":1000000000}`, "")
	if got := h.log.pages[len(h.log.pages)-1].Limit; got != 500 {
		t.Errorf("limit 10^9 was taken as %d", got)
	}
	ask("limit", `{"t":"sync","rid":"RID","conv":"c","after":0}`, "")
	if got := h.log.pages[len(h.log.pages)-1].Limit; got != 100 {
		t.Errorf("an absent limit was taken as %d", got)
	}
}

// TestRequest_Malformed: whatever a logged-in client sends as text, it gets BAD_FRAME and may go on.
func TestRequest_Malformed(t *testing.T) {
	h := build(t, limits())
	c := h.enter("ada/d")
	for _, f := range []struct{ frame, rid string }{
		{``, ""}, {`{`, ""}, {`[]`, ""}, {`null`, ""}, {`{"t":1}`, ""}, {`{}`, ""}, {`{"rid":"x"}`, "x"},
		{`{"t":"unheard","rid":"x"}`, "x"}, {`{"t":"welcome","rid":"x"}`, "x"}, {`{"t":"event","rid":"x"}`, "x"},
		{`{"t":"Send","rid":"x"}`, "x"},
		{`{"t":"ping","rid":"x","rid":"y"}`, "x"}, {"{\"t\":\"ping\",\"rid\":\"x\",\"z\":\"\xff\"}", "x"},
		{`{"t":"send","rid":"x","conv":"c","cmid":"m","data":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, "x"},
	} {
		c.say("%s", f.frame)
		g := c.want("error")
		if g.Code != "BAD_FRAME" || g.RID != f.rid {
			t.Errorf("%.80s: %s", f.frame, g.raw)
		}
		c.up("p")
	}
	p := h.raw()
	p.upgrade()
	p.say(`{"t":"hello","rid":"h","token":"bob/d","device":"d"}`)
	if err := p.write(rawFrame(fin|bin, []byte(`{"t":"ping"}`))); err != nil {
		t.Fatal(err)
	}
	p.wantStatus(1003)
	p = h.raw()
	p.upgrade()
	_ = p.write([]byte{fin | text, 4, 'p', 'i', 'n', 'g'}) // not masked
	p.wantStatus(1002)
}

// TestRequest_EveryKind: each request reaches its call and gets its reply.
func TestRequest_EveryKind(t *testing.T) {
	h := build(t, limits())
	c := h.enter("ada/d")
	for _, x := range []struct{ frame, reply, holds string }{
		{`{"t":"open","rid":"r","cmid":"o","kind":"group","members":["bob"],"title":"t"}`, "opened", `"conv":"c-o"`},
		{`{"t":"open","rid":"r","cmid":"o","kind":"group","members":["bob"],"title":"t"}`, "opened", `"dup":true`},
		{`{"t":"send","rid":"r","conv":"c","cmid":"1","body":"x"}`, "sent", `"seq":1`},
		{`{"t":"send","rid":"r","conv":"c","cmid":"1","body":"x"}`, "sent", `"dup":true`},
		{`{"t":"add","rid":"r","conv":"c","cmid":"2","users":["bob"]}`, "sent", `"seq":2`},
		{`{"t":"remove","rid":"r","conv":"c","cmid":"3","user":"bob"}`, "sent", `"seq":3`},
		{`{"t":"leave","rid":"r","conv":"c","cmid":"4"}`, "sent", `"seq":4`},
		{`{"t":"ack","rid":"r","conv":"c","seq":4}`, "acked", `"delivered":4`},
		{`{"t":"ack","rid":"r","conv":"c","seq":1}`, "acked", `"delivered":4`},
		{`{"t":"sub","rid":"r"}`, "subbed", `"conv":"c"`},
		{`{"t":"sync","rid":"r","conv":"c","after":0}`, "page", `"head":4`},
		{`{"t":"history","rid":"r","conv":"c","before":3}`, "page", `"head":4`},
		{`{"t":"members","rid":"r","conv":"c"}`, "memberlist", `"user":"ada"`},
		{`{"t":"confirm","rid":"r","conv":"c","pairs":[[3,"m3"]]}`, "confirmed", `"mid":"m3"`},
		{`{"t":"ping","rid":"r"}`, "pong", `"rid":"r"`},
		{`{"t":"ping"}`, "pong", ``},
	} {
		c.say("%s", x.frame)
		if f := c.want(x.reply); !strings.Contains(f.raw, x.holds) || (x.holds != "" && f.RID != "r") {
			t.Errorf("%s: %s", x.frame, f.raw)
		}
	}
	if got := fmt.Sprint(h.hub.heard); got != "[c:4 c:1]" {
		t.Errorf("heard %s", got)
	}
}

// TestRequest_WithoutRidNoReply: nothing answers them, not even an error, but what they ask is done.
func TestRequest_WithoutRidNoReply(t *testing.T) {
	h := build(t, limits())
	h.log.onOp = func(op *posthorn.Op) error {
		if op.Conv == "no" {
			return posthorn.Errorf(posthorn.CodeNotMember, "not a member")
		}
		return nil
	}
	c := h.enter("ada/d")
	for range 200 { // more than fit in flight: slots come back
		c.say(`{"t":"send","conv":"c","cmid":"x","body":"x"}`)
		c.say(`{"t":"send","conv":"no","cmid":"x","body":"x"}`)
		c.say(`{"t":"sync","conv":"c","after":0}`)
	}
	c.up("1")
	eventually(t, "everything was done", func() bool {
		n := 0
		h.log.locked(func() { n = h.log.ops + len(h.log.pages) })
		return n == 600
	})
	c.up("2")
}

// TestRequest_Errors: what is shown of an error, and what is not.
func TestRequest_Errors(t *testing.T) {
	h := build(t, limits())
	secret := errors.New(`ERROR: duplicate key value violates unique constraint "events_pkey" (SQLSTATE 23505)`)
	fail := map[string]error{
		"plain":   secret,
		"wrapped": fmt.Errorf("batch: %w", &posthorn.Error{Code: posthorn.CodeForbidden, Msg: "only admins write here", Err: secret}),
		"full":    &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: "the queue is full", Retry: 1500 * time.Millisecond},
		"unsaid":  posthorn.Errorf(posthorn.CodeUnavailable, "the database is away"),
		"unknown": fmt.Errorf("commit: %w", posthorn.ErrUnknown),
	}
	h.log.onOp = func(op *posthorn.Op) error { return fail[op.Conv] }
	h.log.onPage = func(_ context.Context, q posthorn.PageQuery) error { return fail[q.Conv] }
	c := h.enter("ada/d")
	for conv, want := range map[string]string{
		"plain":   `"code":"INTERNAL","msg":"internal error"`,
		"wrapped": `"code":"FORBIDDEN","msg":"only admins write here"`,
		"full":    `"code":"UNAVAILABLE","msg":"the queue is full","retry_ms":1500`,
		"unsaid":  `"retry_ms":1000`,
	} {
		for _, f := range []string{`{"t":"send","rid":"r","conv":%q,"cmid":"m","body":"s3cret-body"}`, `{"t":"sync","rid":"r","conv":%q,"after":0}`} {
			c.say(f, conv)
			if f := c.want("error"); !strings.Contains(f.raw, want) || strings.Contains(f.raw, "SQL") || f.RID != "r" {
				t.Errorf("%s: %s", conv, f.raw)
			}
		}
	}
	for range 100 {
		c.say(`{"t":"send","rid":"r","conv":"unknown","cmid":"m","body":"x"}`)
	}
	c.up("an unknown outcome is not answered")
	eventually(t, "INTERNAL is logged", func() bool { return strings.Contains(h.out.String(), "events_pkey") })
	if out := h.out.String(); strings.Contains(out, "s3cret-body") || !strings.Contains(out, "user=ada") {
		t.Error(out)
	}
	for range 500 {
		c.say(`{"t":"send","rid":"r","conv":"plain","cmid":"m","body":"x"}`)
		c.want("error")
	}
	if n := strings.Count(h.out.String(), "a request failed"); n > 100 {
		t.Errorf("%d lines for 500 errors", n)
	}
}

// TestRequest_VoidSession: an error that voids the session is told, then the connection ends.
func TestRequest_VoidSession(t *testing.T) {
	h := build(t, limits())
	h.log.onAck = func(posthorn.Ack) error { return posthorn.Errorf(posthorn.CodeStaleInstall, "a newer install is live") }
	c := h.enter("ada/d")
	c.say(`{"t":"ack","rid":"r","conv":"c","seq":1}`)
	c.wantError("STALE_INSTALL", "r")
	c.want("bye")
	c.wantClose(4004)
	c = h.enter("ada/d")
	c.say(`{"t":"ack","conv":"c","seq":1}`)
	c.want("bye")
	c.wantClose(4004)
}

// TestRequest_ExactlyOneReply: under random interleavings of requests, outcomes and pushes every rid gets one reply.
// Goal: no reply lost or doubled by slots, goroutines or the queue. Method: seeds choose what several senders ask and
// when held ops are carried out; the log calls some Done functions twice.
func TestRequest_ExactlyOneReply(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := build(t, limits(func(l *posthorn.Limits) { l.InFlight = 1 + int(seed)*5 }))
			var mu sync.Mutex
			rng := rand.New(rand.NewPCG(seed, 1))
			dice := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return rng.IntN(n)
			}
			h.log.hold = func(*posthorn.Op) bool { return dice(3) > 0 }
			h.log.onOp = func(op *posthorn.Op) error {
				switch dice(6) {
				case 0:
					return posthorn.Errorf(posthorn.CodeNotMember, "no")
				case 1:
					op.Done(posthorn.Outcome{Seq: 1})
				}
				return nil
			}
			c := h.enter("ada/d")
			c.t = t
			c.subscribe()
			other := h.enter("bob/d")
			other.t = t
			const n = 300
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { // carries out what is held
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
						h.log.release(1 + dice(8))
					case <-stop:
						return
					}
				}
			})
			wg.Go(func() {
				for i := range n {
					f := []string{
						`{"t":"send","rid":"%d","conv":"c","cmid":"m%[1]d","body":"x"}`, `{"t":"sync","rid":"%d","conv":"c","after":0}`,
						`{"t":"ack","rid":"%d","conv":"c","seq":0}`, `{"t":"ping","rid":"%d"}`, `{"t":"nope","rid":"%d"}`,
						`{"t":"leave","rid":"%d","conv":"d","cmid":"m%[1]d"}`, `{"t":"members","rid":"%d","conv":"c"}`,
						`{"t":"open","rid":"%d","cmid":"m%[1]d","kind":"group","members":["b"],"title":"t"}`,
					}[dice(8)]
					if err := c.write(fmt.Sprintf(f, i)); err != nil {
						t.Error(err)
						return
					}
					if dice(4) == 0 {
						_ = other.write(fmt.Sprintf(`{"t":"send","conv":"c","cmid":"o%d","body":"x"}`, i))
						_ = c.write(`{"t":"ack","conv":"c","seq":0}`)
					}
				}
			})
			got := map[string]int{}
			for len(got) < n {
				f, err := c.read()
				if err != nil {
					t.Fatalf("%d of %d: %v", len(got), n, err)
				}
				if f.RID != "" {
					got[f.RID]++
				}
			}
			c.say(`{"t":"ping","rid":"end"}`)
			for f, err := c.read(); f.RID != "end"; f, err = c.read() {
				if err != nil {
					t.Fatal(err)
				}
				if f.RID != "" {
					got[f.RID]++
				}
			}
			close(stop)
			wg.Wait()
			for rid, k := range got {
				if k != 1 {
					t.Errorf("rid %s got %d replies", rid, k)
				}
			}
		})
	}
}

// TestB08_OrderOnOneSocket: sent and pushes of one conversation are written in seq order while both ends send.
func TestB08_OrderOnOneSocket(t *testing.T) {
	h := build(t, limits(func(l *posthorn.Limits) { l.OutFrames = 4096 }))
	h.log.hold = func(op *posthorn.Op) bool { return op.Sender == "ada" }
	var cs []*client
	for _, u := range []string{"ada/d", "bob/d"} {
		c := h.enter(u)
		c.subscribe()
		cs = append(cs, c)
	}
	const n = 500
	var wg sync.WaitGroup
	for i, c := range cs {
		wg.Go(func() {
			for k := range n {
				if err := c.write(fmt.Sprintf(`{"t":"send","rid":"%d","conv":"c%d","cmid":"%d-%[1]d","body":"x"}`, k, k%4, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	stop := make(chan struct{})
	var rel sync.WaitGroup
	rel.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				h.log.release(7)
			}
		}
	})
	for _, c := range cs {
		wg.Go(func() {
			last := map[string]int64{}
			for range 2 * n {
				f, err := c.read()
				if err != nil {
					t.Error(err)
					return
				}
				conv, seq := f.Conv, f.Seq
				if f.T == "event" {
					conv, seq = f.Ev.Conv, f.Ev.Seq
				}
				if seq != last[conv]+1 {
					t.Errorf("%s: %d after %d", conv, seq, last[conv])
				}
				last[conv] = seq
			}
		})
	}
	wg.Wait()
	close(stop)
	rel.Wait()
}

// TestRequest_BackPressure: InFlight requests are being processed, then reading pauses; the pause is not taken for
// silence; a slot comes free once the reply is written.
func TestRequest_BackPressure(t *testing.T) {
	h := build(t, limits(func(l *posthorn.Limits) { l.InFlight, l.Heartbeat, l.MissedBeats = 4, 200*time.Millisecond, 0 }))
	h.log.hold = func(*posthorn.Op) bool { return true }
	c := h.enter("ada/d")
	for i := range 20 {
		c.say(`{"t":"send","rid":"%d","conv":"c","cmid":"%[1]d","body":"x"}`, i)
	}
	eventually(t, "four are held", func() bool { return h.log.waiting() == 4 })
	s := h.socket("ada")
	eventually(t, "reading pauses", func() bool { return s.live.paused.Load() })
	beats := time.NewTimer(500 * time.Millisecond)
	<-beats.C
	if h.log.waiting() != 4 || h.g.Stats().Sockets != 1 {
		t.Fatalf("%d held, %d sockets", h.log.waiting(), h.g.Stats().Sockets)
	}
	for i := range 20 {
		eventually(t, "the next one", func() bool { return h.log.waiting() > 0 })
		h.log.release(1)
		if f := c.want("sent"); f.RID != fmt.Sprint(i) {
			t.Fatalf("got %s", f.raw)
		}
	}
}

// TestRequest_PagesAreBounded: of many reads a few are with the database or hold a page; acks and sends go on meanwhile.
func TestRequest_PagesAreBounded(t *testing.T) {
	h := build(t, limits())
	gate := make(chan struct{})
	h.log.onPage = func(ctx context.Context, _ posthorn.PageQuery) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c := h.enter("ada/d")
	for i := range 30 {
		c.say(`{"t":"sync","rid":"%d","conv":"c","after":0}`, i)
	}
	c.say(`{"t":"send","rid":"send","conv":"c","cmid":"m","body":"x"}`)
	if f := c.want("sent"); f.RID != "send" {
		t.Error(f.raw)
	}
	n := 0
	h.log.locked(func() { n = len(h.log.pages) })
	if n > pageReads {
		t.Errorf("%d pages at a time", n)
	}
	close(gate)
	for range 30 {
		c.want("page")
	}
	// A connection that ends takes its reads along.
	gate = make(chan struct{})
	c.say(`{"t":"sync","rid":"last","conv":"c","after":0}`)
	eventually(t, "it is with the database", func() bool { h.log.locked(func() { n = len(h.log.pages) }); return n == 31 })
	_ = c.ws.CloseNow()
	eventually(t, "the socket is gone", func() bool { return h.g.Stats().Sockets == 0 })
}
