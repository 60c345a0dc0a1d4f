package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// Goal: a bad item ends as failed, once, and holds up nobody; a restart does not bring it back to life.
// Method: three ways for an item to be bad: the program hands it over; an earlier version left it in the file; only the
// server knows.
func TestB01_BadItemInOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 1)
		f.locked(func() {
			f.on = func(s *fakeSocket, fr wire.Frame) bool {
				if x, ok := fr.(*wire.Send); ok && x.Body != nil && *x.Body == "only the server knows" {
					s.refuse(x.RID, posthorn.CodeBadFrame, "body is bad")
					return true
				}
				return false
			}
		})

		// An earlier version's: with the NUL in each string field, then a good one behind them.
		s, err := openStore(cfg.StorePath, true)
		if err != nil {
			t.Fatal(err)
		}
		nul, good, refused := "a\x00b", "good", "only the server knows"
		bad := []item{
			{Op: OpSend, Conv: "room", Cmid: "c1", Body: &nul},
			{Op: OpSend, Conv: "ro\x00om", Cmid: "c2", Body: &good},
			{Op: OpSend, Conv: "room", Cmid: "c\x003", Body: &good},
			{Op: OpSend, Conv: "room", Cmid: "c4", Data: []byte(`{"a":"\u0000"}`)},
			{Op: OpSend, Conv: "room", Cmid: "c5", Data: []byte(`{"a":"\ud800"}`)},
			{Op: OpAdd, Conv: "room", Cmid: "c6", Users: []string{"x\x00"}},
			{Op: OpOpen, Cmid: "c7", Kind: "group", Title: nul},
			{Op: OpSend, Conv: "room", Cmid: "c8", Body: &refused},
			{Op: OpSend, Conv: "room", Cmid: "c9", Body: &good},
		}
		for _, it := range bad {
			if err := s.update(func(tx storeTx) error { _, err := tx.putItem(0, it); return err }, nil); err != nil {
				t.Fatal(err)
			}
		}
		_ = s.close()

		for life := 1; life <= 3; life++ {
			c := open(t, cfg)
			feed := c.Subscribe(100)
			pass(2 * time.Minute)
			if got := len(c.Failed()); got != 8 {
				t.Errorf("life %d: %d items failed, want 8: %+v", life, got, c.Failed())
			}
			for _, it := range c.Failed() {
				if it.State != ItemFailed || it.Err.Code != posthorn.CodeBadFrame {
					t.Errorf("life %d: %s: %v", life, it.Cmid, it.Err)
				}
			}
			if len(c.Outbox()) != 0 {
				t.Errorf("life %d: still on its way: %+v", life, c.Outbox())
			}
			if c.State().Phase != Online {
				t.Errorf("life %d: state %+v", life, c.State())
			}
			feed.Close()
			failed := 0
			for ch := range feed.C() {
				if ch.Kind == ChangeItem && ch.Item.State == ItemFailed {
					failed++
				}
			}
			if life > 1 && failed > 0 {
				t.Errorf("life %d: %d items failed once more", life, failed)
			}
			if life == 3 {
				for _, it := range c.Failed() {
					if err := c.Discard(it.Cmid); err != nil {
						t.Error(err)
					}
				}
				if len(c.Failed()) != 0 {
					t.Errorf("after Discard: %+v", c.Failed())
				}
			}
			_ = c.Close()
		}
		if n := len(sentFrames[*wire.Send](f)); n != 2 || f.bad != 0 {
			t.Errorf("%d sends and %d bad frames reached the server in three lives, want 2: the refused one and the good one", n, f.bad)
		}
		if got := f.log("room"); len(got) != 2 || got[1].Cmid != "c9" {
			t.Errorf("the log holds %v", seqs(got))
		}
	})
}

func TestB01_RefusedBeforeTheOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := serveFake(t, newFake())
		c, err := Open(t.Context(), cfg) // no connection is needed
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx := t.Context()
		big := make([]byte, 64<<10+1)
		for i := range big {
			big[i] = 'x'
		}
		for name, try := range map[string]func() (*Pending, error){
			"NUL":            func() (*Pending, error) { return c.Send(ctx, "room", Message{Body: "a\x00b"}) },
			"no UTF-8":       func() (*Pending, error) { return c.Send(ctx, "room", Message{Body: "a\xffb"}) },
			"NUL in conv":    func() (*Pending, error) { return c.Send(ctx, "a\x00", Message{Body: "x"}) },
			"empty conv":     func() (*Pending, error) { return c.Send(ctx, "", Message{Body: "x"}) },
			"long cmid":      func() (*Pending, error) { return c.Send(ctx, "room", Message{Body: "x", Cmid: string(big[:65])}) },
			"nothing":        func() (*Pending, error) { return c.Send(ctx, "room", Message{}) },
			"large":          func() (*Pending, error) { return c.Send(ctx, "room", Message{Body: string(big)}) },
			"no object":      func() (*Pending, error) { return c.Send(ctx, "room", Message{Data: []byte(`[1]`)}) },
			"no JSON":        func() (*Pending, error) { return c.Send(ctx, "room", Message{Data: []byte(`{"a":1},"body":"x"`)}) },
			"repeated field": func() (*Pending, error) { return c.Send(ctx, "room", Message{Data: []byte(`{"a":1,"a":2}`)}) },
			"lone surrogate": func() (*Pending, error) { return c.Send(ctx, "room", Message{Data: []byte(`{"a":"\ud800"}`)}) },
			"negative reply": func() (*Pending, error) { return c.Send(ctx, "room", Message{Body: "x", ReplyTo: -1}) },
			"nobody":         func() (*Pending, error) { return c.Add(ctx, "room") },
			"user's NUL":     func() (*Pending, error) { return c.Remove(ctx, "room", "x\x00") },
			"unknown kind":   func() (*Pending, error) { return c.OpenConversation(ctx, NewConversation{Kind: "club"}) },
			"unknown history": func() (*Pending, error) {
				return c.OpenConversation(ctx, NewConversation{Kind: "group", History: "some"})
			},
		} {
			_, err := try()
			var e *posthorn.Error
			if !errors.As(err, &e) || e.Code.Class() != posthorn.ItemTerminal {
				t.Errorf("%s: %v, want a refusal for good", name, err)
			}
		}
		if n := len(c.Outbox()) + len(c.Failed()); n != 0 {
			t.Errorf("%d items entered the outbox", n)
		}
	})
}

// Goal: silence never makes a second message, and never loses one.
// Method: the reply is lost in every way that there is: the frame, the connection, the process. The server ends with one
// event under the cmid, the sender with dup and the first seq, and the device with the event.
func TestD2_SameCmidAfterSilence(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, f *fake, c *Client, cfg Config) *Client{
		"frame": func(t *testing.T, f *fake, c *Client, cfg Config) *Client { return c },
		"connection": func(t *testing.T, f *fake, c *Client, cfg Config) *Client {
			f.cut()
			return c
		},
		"process": func(t *testing.T, f *fake, c *Client, cfg Config) *Client {
			_ = c.Close()
			return open(t, cfg)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				cfg := serveFake(t, f)
				f.post("room", 3)
				lost := 0
				f.locked(func() {
					f.mute = func(fr wire.Frame) bool {
						if s, ok := fr.(*wire.Sent); ok && !s.Dup {
							lost++
							return true
						}
						return false
					}
				})
				c := open(t, cfg)
				waitCursor(t, c, "room", 3)
				p := send(t, c, "room", "once")
				synctest.Wait()
				if lost != 1 || len(c.Outbox()) != 1 {
					t.Fatalf("lost %d replies, outbox %v", lost, c.Outbox())
				}
				c = lose(t, f, c, cfg)
				pass(time.Minute)
				if name != "process" {
					s, err := result(t, p)
					if err != nil || !s.Dup || s.Seq != 4 {
						t.Errorf("result %+v %v, want dup of 4", s, err)
					}
				} else if _, err := result(t, p); !errors.Is(err, ErrClosed) {
					t.Errorf("the handle of the closed client: %v", err)
				}
				sends := sentFrames[*wire.Send](f)
				if len(sends) != 2 || sends[0].Cmid != sends[1].Cmid || sends[0].Cmid != p.Cmid {
					t.Errorf("sends %+v, want the same twice", sends)
				}
				if name == "frame" && sends[0].RID == sends[1].RID {
					t.Error("the second sending bears the first one's rid")
				}
				if len(c.Outbox()) != 0 || f.seqOf("room") != 4 {
					t.Errorf("outbox %v, log %d", c.Outbox(), f.seqOf("room"))
				}
				sameLog(t, c, f, "room")
			})
		})
	}
}

// Goal: a dup ends the item and moves nothing: what lies between the cursor and its seq may never have come.
func TestD2_DupMovesNoCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 3)
		c := open(t, cfg)
		waitCursor(t, c, "room", 3)
		pass(time.Second)
		f.locked(func() {
			f.quiet = true
			f.mute = func(fr wire.Frame) bool { s, ok := fr.(*wire.Sent); return ok && !s.Dup }
			f.on = func(_ *fakeSocket, fr wire.Frame) bool { return fr.Type() == "sync" } // held
		})
		f.post("room", 2)
		p := send(t, c, "room", "sixth")
		pass(11 * time.Second)
		if s, err := result(t, p); err != nil || !s.Dup || s.Seq != 6 {
			t.Errorf("result %+v %v", s, err)
		}
		if cur, _, _ := c.Cursor("room"); cur.Seq != 3 || len(held(t, c, "room")) != 3 {
			t.Errorf("cursor %d with %d events, want 3", cur.Seq, len(held(t, c, "room")))
		}
		if acks := f.acks("room"); slices.Max(acks) != 3 {
			t.Errorf("acks %v, want 3 at most", acks)
		}
		f.locked(func() { f.on = nil })
		pass(time.Minute)
		sameLog(t, c, f, "room")
	})
}

// Goal: an answer that comes later than RequestTimeout still counts, or a slow server would be asked for ever.
func TestD2_LateAnswerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		f.post("room", 1)
		f.locked(func() {
			f.on = func(s *fakeSocket, fr wire.Frame) bool {
				if x, ok := fr.(*wire.Send); ok {
					time.AfterFunc(12*time.Second, func() { f.locked(func() { f.serve(s, x) }) })
					return true
				}
				return false
			}
		})
		c := open(t, cfg)
		waitCursor(t, c, "room", 1)
		p := send(t, c, "room", "slow")
		pass(13 * time.Second)
		if s, err := result(t, p); err != nil || s.Dup || s.Seq != 2 {
			t.Errorf("result %+v %v", s, err)
		}
		pass(time.Minute)
		sameLog(t, c, f, "room")
	})
}

// Goal: a conversation's items arrive in the order of the calls, whatever the server refuses for the moment; different
// conversations do not wait for each other; no more than 32 are under way.
func TestOrderWithinAConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		const convs, each = 60, 5 // more than the list's first page
		n, flying, most := 0, map[string]int{}, 0
		for i := range convs {
			f.post(fmt.Sprint("c", i), 1)
		}
		f.locked(func() {
			f.on = func(s *fakeSocket, fr wire.Frame) bool {
				x, ok := fr.(*wire.Send)
				if !ok {
					return false
				}
				n++
				flying[x.Conv]++
				if flying[x.Conv] > 1 {
					t.Errorf("%s: two items under way", x.Conv)
				}
				most = max(most, len(flying))
				code := []posthorn.Code{"", posthorn.CodeUnavailable, "", posthorn.CodeInternal, posthorn.CodeRateLimited, "", "SOMETHING_NEW"}[n%7]
				time.AfterFunc(50*time.Millisecond, func() {
					f.locked(func() {
						delete(flying, x.Conv)
						if code != "" {
							s.say(&wire.Error{RID: x.RID, Code: code, RetryMS: int64(n % 3 * 100)})
							return
						}
						f.serve(s, x)
					})
				})
				return true
			}
		})
		c := open(t, cfg)
		var last []*Pending
		for i := range each {
			for j := range convs {
				last = append(last, send(t, c, fmt.Sprint("c", j), fmt.Sprint(i)))
			}
		}
		for _, p := range last {
			if _, err := result(t, p); err != nil {
				t.Fatal(err)
			}
		}
		for j := range convs {
			var bodies []string
			for _, ev := range f.log(fmt.Sprint("c", j))[1:] {
				bodies = append(bodies, *ev.Body)
			}
			if !slices.Equal(bodies, []string{"0", "1", "2", "3", "4"}) {
				t.Errorf("c%d: %v", j, bodies)
			}
		}
		if most > flightItems || most < 10 {
			t.Errorf("%d items were under way at once, want many and at most %d", most, flightItems)
		}
		pass(time.Minute)
		for j := range convs {
			sameLog(t, c, f, fmt.Sprint("c", j))
		}
	})
}

// Goal: each code does to an item and to the session what its class says.
func TestErrorClasses(t *testing.T) {
	for _, code := range []posthorn.Code{
		posthorn.CodeBadFrame, posthorn.CodeForbidden, posthorn.CodeNotMember, posthorn.CodeNotFound, posthorn.CodeCmidReused,
		posthorn.CodeCmidTooOld, posthorn.CodeTooLarge, posthorn.CodeUnauthenticated, posthorn.CodeStaleInstall, posthorn.CodeReplaced,
		posthorn.CodeCursorAhead, posthorn.CodeRateLimited, posthorn.CodeUnavailable, posthorn.CodeInternal, "NEWER",
	} {
		t.Run(string(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				cfg := serveFake(t, f)
				tokens := 0
				cfg.Token = func(context.Context) (string, error) { tokens++; return "good", nil }
				f.post("room", 2)
				refusals := 0
				f.locked(func() {
					f.on = func(s *fakeSocket, fr wire.Frame) bool {
						if x, ok := fr.(*wire.Send); ok && refusals == 0 {
							refusals++
							s.say(&wire.Error{RID: x.RID, Code: code, Msg: "no", RetryMS: 3000})
							return true
						}
						return false
					}
				})
				c := open(t, cfg)
				waitCursor(t, c, "room", 2)
				first, second := send(t, c, "room", "first"), send(t, c, "room", "second")
				synctest.Wait()
				if code.Class() == posthorn.Retry {
					if n := len(sentFrames[*wire.Send](f)); n != 1 {
						t.Errorf("%d sends before retry_ms was over, want 1", n)
					}
				}
				pass(time.Minute)
				if code == posthorn.CodeReplaced {
					if c.State().Phase != Replaced || len(c.Outbox()) != 2 {
						t.Fatalf("state %+v, outbox %d", c.State(), len(c.Outbox()))
					}
					c.Reconnect()
				}
				_, err := result(t, first)
				s2, err2 := result(t, second)
				if err2 != nil {
					t.Errorf("second: %v", err2)
				}
				var e *posthorn.Error
				if terminal := code.Class() == posthorn.ItemTerminal; terminal != (errors.As(err, &e) && e.Code == code) || terminal != (len(c.Failed()) == 1) {
					t.Errorf("first: %v, failed %+v", err, c.Failed())
				} else if !terminal && (err != nil || s2.Seq != 4) {
					t.Errorf("first: %v, second at %d", err, s2.Seq)
				}
				if want := map[bool]int{true: 2, false: 1}[code.Class() == posthorn.SessionTerminal]; tokens != want {
					t.Errorf("%d tokens were fetched, want %d", tokens, want)
				}
				if want := map[bool]int64{true: 2, false: 1}[code == posthorn.CodeStaleInstall]; c.State().Install != want {
					t.Errorf("install %d, want %d", c.State().Install, want)
				}
				if n := len(sentFrames[*wire.Confirm](f)); (n > 0) != (code == posthorn.CodeCursorAhead) {
					t.Errorf("%d confirms", n)
				}
				pass(time.Minute)
				sameLog(t, c, f, "room")
			})
		})
	}
}

// Goal: the outbox's other requests go the same way, and a duplicate key is told at once.
func TestOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		cfg := serveFake(t, f)
		cfg.OutboxItems = 6
		c := open(t, cfg)
		opened, err := c.OpenConversation(t.Context(), NewConversation{Kind: posthorn.Group, Members: []string{"bob"}, Title: "t"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := result(t, opened)
		if err != nil || s.Conv != "conv-1" || s.Seq != 1 {
			t.Fatal(s, err)
		}
		add, _ := c.Add(t.Context(), s.Conv, "cleo")
		rm, _ := c.Remove(t.Context(), s.Conv, "cleo")
		bye, _ := c.Leave(t.Context(), s.Conv)
		for i, p := range []*Pending{add, rm, bye} {
			if s, err := result(t, p); err != nil || s.Seq != int64(i+2) {
				t.Error(s, err)
			}
		}
		pass(time.Second)
		sameLog(t, c, f, s.Conv) // with the server's own words for who came and went
		if n := len(c.Outbox()); n != 0 {
			t.Errorf("outbox %d", n)
		}

		f.locked(func() { f.on = func(_ *fakeSocket, fr wire.Frame) bool { return fr.Type() == "send" } })
		p1, err := c.Send(t.Context(), s.Conv, Message{Body: "x", Cmid: "mine", Data: []byte(` {"n": 9007199254740993} `)})
		if err != nil {
			t.Fatal(err)
		}
		p2, err := c.Send(t.Context(), s.Conv, Message{Body: "x", Cmid: "mine", Data: []byte(`{"n": 9007199254740993}`)})
		if err != nil || p2 != p1 {
			t.Errorf("the same again: %v", err)
		}
		var e *posthorn.Error
		if _, err := c.Send(t.Context(), s.Conv, Message{Body: "y", Cmid: "mine"}); !errors.As(err, &e) || e.Code != posthorn.CodeCmidReused {
			t.Errorf("other content: %v", err)
		}
		if err := c.Discard("mine"); err == nil {
			t.Error("an item under way was discarded")
		}
		for err == nil {
			_, err = c.Send(t.Context(), s.Conv, Message{Body: "more"})
		}
		if !errors.Is(err, ErrOutboxFull) || len(c.Outbox()) != 6 {
			t.Errorf("%v with %d items", err, len(c.Outbox()))
		}
		f.locked(func() { f.on = nil })
		pass(time.Minute)
		if len(c.Outbox()) != 0 {
			t.Errorf("outbox %+v", c.Outbox())
		}
		sameLog(t, c, f, s.Conv)
		if got := string(f.log(s.Conv)[4].Data); got != `{"n": 9007199254740993}` {
			t.Errorf("data arrived as %s", got)
		}
	})
}
