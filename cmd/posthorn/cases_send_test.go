package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// post makes an HTTP call with the admin key and gives status and body.
func (n *node) post(t *testing.T, path, key, body string) (int, string) {
	t.Helper()
	status, answer := n.request(t, strings.Repeat("k", 40), http.MethodPost, path, key, body)
	return status, string(answer)
}

// A value that PostgreSQL cannot hold is refused before it gets there, with one code, wherever it stands.
func TestB01_NULInAMessage(t *testing.T) {
	n, ana, _, conv := pair(t)
	for name, text := range map[string]string{
		"body":    `{"t":"send","rid":"r","conv":"` + conv + `","cmid":"m","body":"a\u0000b"}`,
		"conv":    `{"t":"send","rid":"r","conv":"c\u0000","cmid":"m","body":"b"}`,
		"cmid":    `{"t":"send","rid":"r","conv":"` + conv + `","cmid":"m\u0000","body":"b"}`,
		"rid":     `{"t":"send","rid":"r\u0000","conv":"` + conv + `","cmid":"m","body":"b"}`,
		"data":    `{"t":"send","rid":"r","conv":"` + conv + `","cmid":"m","data":{"k":["a\u0000b"]}}`,
		"title":   `{"t":"open","rid":"r","cmid":"m","kind":"group","title":"a\u0000b"}`,
		"members": `{"t":"open","rid":"r","cmid":"m","kind":"group","members":["a\u0000b"]}`,
		"users":   `{"t":"add","rid":"r","conv":"` + conv + `","cmid":"m","users":["a\u0000b"]}`,
		"raw":     "{\"t\":\"send\",\"rid\":\"r\",\"conv\":\"" + conv + "\",\"cmid\":\"m\",\"body\":\"a\x00b\"}",
	} {
		t.Run(name, func(t *testing.T) {
			ana.t = t
			e, ok := ana.raw(text).(*wire.Error)
			if !ok || e.Code != posthorn.CodeBadFrame || strings.Contains(e.Msg, "SQL") {
				t.Fatalf("answer: %+v", e)
			}
		})
	}
	ana.t = t
	t.Run("device at login", func(t *testing.T) {
		p := n.dial(t, nil)
		if e, ok := p.raw(`{"t":"hello","rid":"r","token":"x","device":"d\u0000"}`).(*wire.Error); !ok || e.Code.Class() == posthorn.Retry {
			t.Fatalf("answer: %+v", e)
		}
	})
	t.Run("over HTTP", func(t *testing.T) {
		status, body := n.post(t, "/conversations/"+conv+"/events", "k1", `{"sender":"ana","body":"a\u0000b"}`)
		if status != http.StatusBadRequest || !strings.Contains(body, string(posthorn.CodeBadFrame)) {
			t.Fatalf("%d %s", status, body)
		}
	})
	// No seq was used, and the socket is good.
	if s := ana.send(conv, "good", "fine"); s.Seq != 2 {
		t.Fatalf("the next good send: %+v", s)
	}
}

func TestB02_SameCmidOtherBody(t *testing.T) {
	n, ana, _, conv := pair(t)
	other := serve(t, n.url)
	first := ana.send(conv, "X", "one")
	two := "two"
	again := func(t *testing.T, p *peer) {
		t.Helper()
		p.t = t
		p.refused(&wire.Send{Conv: conv, Cmid: "X", Body: &two}, posthorn.CodeCmidReused)
		if s := p.send(conv, "X", "one"); !s.Dup || s.Seq != first.Seq || s.Mid != first.Mid {
			t.Fatalf("the same again: %+v", s)
		}
		p.refused(&wire.Send{Conv: conv, Cmid: "X", Body: &two, Data: []byte(`{}`)}, posthorn.CodeCmidReused)
		one := "one"
		p.refused(&wire.Send{Conv: conv, Cmid: "X", Body: &one, ReplyTo: 1}, posthorn.CodeCmidReused)
	}
	t.Run("same gateway", func(t *testing.T) { again(t, ana) })
	t.Run("second gateway", func(t *testing.T) { again(t, other.connect(t, "ana", "tablet")) })
	t.Run("after a restart", func(t *testing.T) {
		if err := n.stop(5 * time.Second); err != nil {
			t.Fatal(err)
		}
		again(t, serve(t, n.url).connect(t, "ana", "laptop"))
	})
	if b := pgtest.Query[string](t, n.url, "select body from posthorn.events where conv_id = $1 and cmid = 'X'", conv); b != "one" {
		t.Fatalf("the row says %q", b)
	}
}

func TestB04_ScopeAndLifeOfTheKey(t *testing.T) {
	n, ana, bo, conv := pair(t)
	elsewhere := ana.group("other", "bo")
	fresh := func(t *testing.T, s *wire.Sent) {
		t.Helper()
		if s.Dup {
			t.Fatalf("%+v is a duplicate", s)
		}
	}
	fresh(t, ana.send(conv, "A", "x"))
	t.Run("another sender", func(t *testing.T) { fresh(t, bo.send(conv, "A", "x")) })
	t.Run("another conversation", func(t *testing.T) { fresh(t, ana.send(elsewhere, "A", "x")) })
	t.Run("exact bytes", func(t *testing.T) {
		for _, cmid := range []string{"a", "A ", "\u00e9", "e\u0301"} {
			fresh(t, ana.send(conv, cmid, "x"))
		}
	})
	t.Run("the user's other device", func(t *testing.T) {
		if s := n.connect(t, "ana", "tablet").send(conv, "A", "x"); !s.Dup || s.Seq != 2 {
			t.Fatalf("%+v", s)
		}
	})
	t.Run("after 90 days", func(t *testing.T) {
		pgtest.Exec(t, n.url, "update posthorn.events set at = at - interval '90 days'")
		if s := ana.send(conv, "A", "x"); !s.Dup || s.Seq != 2 {
			t.Fatalf("%+v", s)
		}
	})
	body := "x"
	t.Run("empty", func(t *testing.T) {
		ana.refused(&wire.Send{Conv: conv, Cmid: "", Body: &body}, posthorn.CodeBadFrame)
	})
	t.Run("65 bytes", func(t *testing.T) {
		ana.refused(&wire.Send{Conv: conv, Cmid: strings.Repeat("x", 65), Body: &body}, posthorn.CodeBadFrame)
	})
	t.Run("1 MB", func(t *testing.T) {
		p := n.connect(t, "cy", "phone")
		_ = p.WriteRaw([]byte(`{"t":"send","rid":"r","conv":"c","body":"b","cmid":"` + strings.Repeat("x", 1<<20) + `"}`))
		for range p.Frames() { // larger than any frame: close 1009
		}
	})
	t.Run("over HTTP and SQL", func(t *testing.T) {
		status, got := n.post(t, "/conversations/"+conv+"/events", "A", `{"sender":"ana","body":"x"}`)
		if status/100 != 2 || !strings.Contains(got, `"dup":true`) || !strings.Contains(got, `"seq":2`) {
			t.Fatalf("%d %s", status, got)
		}
		if dup := pgtest.Query[bool](t, n.url, "select dup from posthorn.send($1, 'ana', 'A', 'x')", conv); !dup {
			t.Fatal("SQL made a second row")
		}
	})
}

// Order and time are the database's: what a client says of either is ignored, and at never falls in a conversation.
func TestB09_TheSendersClockDecidesNothing(t *testing.T) {
	n, ana, _, conv := pair(t)
	other := serve(t, n.url).connect(t, "bo", "tablet")
	now := func() int64 {
		return pgtest.Query[int64](t, n.url, "select floor(extract(epoch from clock_timestamp()) * 1000)::bigint")
	}
	seq := int64(1)
	for i, extra := range []string{`"at":32503680000000`, `"at":253402300799000`, `"at":-5`, `"seq":99`, `"sender":"bo"`, `"mid":"ffffffff-ffff-7fff-8fff-ffffffffffff"`} {
		seq++
		before := now()
		s, ok := ana.raw(fmt.Sprintf(`{"t":"send","rid":"r%d","conv":%q,"cmid":"m%d","body":"x",%s}`, i, conv, i, extra)).(*wire.Sent)
		if !ok || s.Seq != seq || s.At < before || s.At > now() || strings.HasPrefix(s.Mid, "ffff") {
			t.Fatalf("%s: %+v", extra, s)
		}
	}
	if who := pgtest.Query[int](t, n.url, "select count(*) from posthorn.events where kind = 'msg' and sender = 'bo'"); who != 0 {
		t.Fatal("a client chose its sender")
	}
	// The database's clock was an hour ahead and steps back: at stays, order goes on, through either gateway.
	pgtest.Exec(t, n.url, "update posthorn.events set at = at + interval '1 hour' where seq = (select max(seq) from posthorn.events)")
	ahead := pgtest.Query[int64](t, n.url, "select floor(extract(epoch from max(at)) * 1000)::bigint from posthorn.events")
	for i, p := range []*peer{ana, other} {
		seq++
		if s := p.send(conv, fmt.Sprint("after", i), "x"); s.Seq != seq || s.At < ahead {
			t.Fatalf("after the step: %+v, before %d", s, ahead)
		}
	}
}

// A legal message never fails by its notification, and junk on the channel disturbs nobody.
func TestB38_NotificationsAndIds(t *testing.T) {
	n := serve(t, pgtest.URL(t))
	other := serve(t, n.url, func(c *serveCmd) { c.TailPollMax = time.Minute }) // only the bell is quick
	ana, bo := n.connect(t, "ana", "phone"), other.connect(t, "bo", "phone")
	body := "x"
	t.Run("2000 emoji", func(t *testing.T) {
		ana.refused(&wire.Send{Conv: strings.Repeat("😀", 2000), Cmid: "m", Body: &body}, posthorn.CodeBadFrame)
		if status, got := n.post(t, "/conversations", "k", `{"kind":"group","members":["ana"],"conv":"`+strings.Repeat("😀", 2000)+`"}`); status != 400 {
			t.Fatalf("%d %s", status, got)
		}
	})
	conv := "a:b:7"
	if status, got := n.post(t, "/conversations", "k2", `{"kind":"group","members":["ana","bo"],"conv":"a:b:7"}`); status/100 != 2 {
		t.Fatalf("%d %s", status, got)
	}
	ask[*wire.Subbed](bo, &wire.Sub{})
	c, err := pgx.Connect(t.Context(), pgtest.SuperURL(t, n.url))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	for i, junk := range []string{"", "x", "c-ab:-1", "c-ab:99999999999999999999", "nosuch:1", "a:b:7:1", strings.Repeat("\x7f", 7999)} {
		if _, err := c.Exec(t.Context(), "select pg_notify('im_events', $1)", junk); err != nil {
			t.Fatal(err)
		}
		ana.send(conv, fmt.Sprint("m", i), "x")
		if ev := frame[*wire.Event](bo, nil); ev.Ev.Conv != conv || ev.Ev.Seq != int64(i)+2 {
			t.Fatalf("after %.20q: %+v", junk, ev)
		}
	}
	t.Run("longest ids, a full batch", func(t *testing.T) {
		var convs []string
		for i := range 60 {
			id := fmt.Sprintf("%03d", i) + strings.Repeat("é", 62) // 127 bytes
			if status, got := n.post(t, "/conversations", "k"+id[:3], `{"kind":"group","members":["ana","bo"],"conv":"`+id+`"}`); status/100 != 2 {
				t.Fatalf("%d %s", status, got)
			}
			convs = append(convs, id)
		}
		for _, id := range convs { // without waiting, so that they share a batch
			if err := ana.Write(&wire.Send{RID: id[:3], Conv: id, Cmid: "m", Body: &body}); err != nil {
				t.Fatal(err)
			}
		}
		for range convs {
			frame(ana, func(s *wire.Sent) bool { return s.Seq == 2 })
		}
		for range convs {
			frame(bo, func(e *wire.Event) bool { return e.Ev.Kind == posthorn.KindMsg })
		}
	})
}
