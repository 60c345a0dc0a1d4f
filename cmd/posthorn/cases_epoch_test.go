package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// dump is a copy of a database that nobody is connected to, made as a restore makes one.
func dump(t *testing.T, of string) string {
	t.Helper()
	name := func(raw string) string {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return u.Path[1:]
	}
	seat, at := pgtest.EmptyURL(t), pgtest.EmptyURL(t)
	pgtest.Exec(t, seat, "drop database "+name(at))
	pgtest.Exec(t, seat, "create database "+name(at)+" template "+name(of)+" owner posthorn")
	return at
}

// cutOff loses a conversation's tail within its database, as a standby does that was promoted before it had all.
func cutOff(t *testing.T, url, conv string, head int64) {
	t.Helper()
	pgtest.Exec(t, url, "delete from posthorn.events where conv_id = $1 and seq > $2", conv, head)
	pgtest.Exec(t, url, "update posthorn.conversations set next_seq = $2 + 1 where conv_id = $1", conv, head)
	pgtest.Exec(t, url, "update posthorn.device_cursors set delivered_seq = least(delivered_seq, $2) where conv_id = $1", conv, head)
	pgtest.Exec(t, url, "truncate posthorn.event_commits")
}

// A position means something only together with its epoch. After a restore from a dump the device that was at 120 drops
// what lies above 80 and takes what the new life has there; whether the new head is still below its old place when it
// comes back, or already above it, and wherever it died in between. Where its nonce is known to the restored database it
// finds 80 by confirm; where the dump is older than the nonce, the device is taken for a clone and begins anew.
func TestB15_PositionOfAnotherLife(t *testing.T) {
	for _, c := range []rewind{
		{name: "a dump, back at head 80", head: 80, dump: true, night: true},
		{name: "a dump, back at head 130", head: 130, dump: true},
		{name: "a lost tail, back at head 80", head: 80},
		{name: "a lost tail, back at head 130", head: 130, night: true},
		{name: "a lost tail, and a death between the new epoch and the common past", head: 130, dies: true},
		{name: "a dump that only the gateway notices, by what it remembers", head: 80, dump: true, noticed: true},
	} {
		if !c.night || rounds(0, 1) > 0 {
			t.Run(c.name, c.test)
		}
	}
}

type rewind struct {
	name string
	head int64 // of the restored database when the device comes back
	dump bool
	dies bool // on its way

	noticed bool // nobody tells the gateway of a new epoch
	night   bool // differs too little from the others for a short run
}

func (r rewind) test(t *testing.T) {
	t.Parallel()
	stop := func(n *node) {
		t.Helper()
		if err := n.stop(5 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	// The first life, until the dump at 80: bo's two devices have confirmed all of it.
	memory := t.TempDir()
	serve := func(url string) *node {
		t.Helper()
		return serve(t, url, func(c *serveCmd) { c.Data = memory })
	}
	n := serve(pgtest.URL(t))
	first := n.store.Epoch()
	way := &road{}
	way.lead(n.server.url())
	var ahead, confirms atomic.Int64
	cfg := n.deviceConfig(t, "bo", "phone", func(c *client.Config) {
		c.HTTPClient = way.client(t)
		c.Tracer = tap{frame: func(d client.Direction, f wire.Frame, _ []byte) {
			if e, ok := f.(*wire.Error); ok && e.Code == posthorn.CodeCursorAhead {
				ahead.Add(1)
			}
			if _, ok := f.(*wire.Confirm); ok && d == client.Out {
				confirms.Add(1)
			}
		}}
	})
	tablet := n.connect(t, "bo", "tablet")
	conv := n.connect(t, "ana", "phone").group("open", "bo")
	write(t, n.url, conv, "ana", "kept ", 79)
	ask[*wire.Acked](tablet, &wire.Ack{Conv: conv, Seq: 80})
	bo := begin(t, cfg)
	delivered := func(url string) int64 {
		return pgtest.Query[int64](t, url, `select coalesce(max(c.delivered_seq), 0) from posthorn.device_cursors c join posthorn.devices d using (device_id)
			where c.conv_id = $1 and d.device_name = 'phone' and c.epoch = (select epoch from posthorn.sequence_space)`, conv)
	}
	poll(t, "the ack of 80", func() bool { return delivered(n.url) == 80 })
	stop(n)
	restored := n.url
	if r.dump {
		restored = dump(t, n.url)
	}

	// It goes on to 120, which the restore loses. Restoring gives the database a new epoch.
	n = serve(n.url)
	way.lead(n.server.url())
	write(t, n.url, conv, "ana", "lost ", 39)
	n.connect(t, "ana", "phone").send(conv, "lost 40", "lost 40") // by this gateway, which remembers
	reaches(t, bo, conv, 120)
	if cur, _, _ := bo.Cursor(conv); cur.Epoch != n.store.Epoch() || cur.Seq != 120 {
		t.Fatalf("cursor %+v", cur)
	}
	_ = bo.Close()
	stop(n)
	if !r.dump {
		cutOff(t, restored, conv, 80)
	}
	if !r.noticed {
		pgtest.Exec(t, restored, "update posthorn.sequence_space set epoch = epoch + 1")
	}
	n = serve(restored)
	way.lead(n.server.url())
	var epoch int64
	poll(t, "the new epoch", func() bool {
		epoch = pgtest.Query[int64](t, restored, "select epoch from posthorn.sequence_space")
		return epoch != first
	})
	write(t, restored, conv, "ana", "new ", int(r.head-80))

	if r.dies {
		d := doom{URL: n.server.url(), Device: "phone", Store: cfg.StorePath, Frame: "confirm", Way: client.Out}
		d.Token, _ = cfg.Token(t.Context()) // of before the dump
		d.die(t)
	}
	bo = begin(t, cfg)
	reaches(t, bo, conv, r.head)
	poll(t, "the common past", func() bool {
		cur, _, err := bo.Cursor(conv)
		return err == nil && cur.Epoch == epoch && cur.Seq == r.head
	})
	sameAsTable(t, restored, bo, conv)
	write(t, restored, conv, "ana", "then ", int(130-r.head))
	reaches(t, bo, conv, 130)
	sameAsTable(t, restored, bo, conv)
	poll(t, "the ack of 130 in the new epoch", func() bool { return delivered(restored) == 130 })
	if n := ahead.Load(); n > 2 {
		t.Errorf("%d times CURSOR_AHEAD", n)
	}
	if n := confirms.Load(); n > 8 || n == 0 && !r.dump {
		t.Errorf("%d confirms", n)
	}

	// The server keeps the two as one value too: what the tablet had confirmed in the first life is void, and what lies
	// beyond the head is refused by number.
	tablet = n.connect(t, "bo", "tablet", func(h *wire.Hello) { h.Install = &tablet.welcome.InstallEpoch; h.Epoch = 1 })
	if e := ask[*wire.Subbed](tablet, &wire.Sub{}).Convs[0]; tablet.welcome.Epoch != epoch || e.Epoch != epoch || e.Delivered != 0 || e.Head != 130 {
		t.Errorf("welcome %+v, entry %+v", tablet.welcome, e)
	}
	if e := tablet.refused(&wire.Ack{Conv: conv, Seq: 131}, posthorn.CodeCursorAhead); e.Msg != fmt.Sprintf("seq=%d head=%d", 131, 130) {
		t.Error(e.Msg)
	}
	if a := ask[*wire.Acked](tablet, &wire.Ack{Conv: conv, Seq: 79}); a.Delivered != 79 {
		t.Errorf("the new epoch begins with %+v", a)
	}
}

// A database that was wiped and made anew, and by chance has the same number of an epoch: no gateway remembers anything. The
// device sees that it holds more than there is, compares, and takes what is there.
func TestE1_WipedUnderTheSameNumber(t *testing.T) {
	var token string
	way := &road{}
	life := func(prefix string, messages int) *node {
		n := serve(t, pgtest.URL(t))
		token = n.token(t, "bo", "phone")
		n.token(t, "ana", "phone")
		status, answer := n.request(t, strings.Repeat("k", 40), http.MethodPost, "/conversations", prefix, `{"conv":"room","kind":"group","members":["ana","bo"]}`)
		if status/100 != 2 {
			t.Fatalf("%d %s", status, answer)
		}
		write(t, n.url, "room", "ana", prefix, messages)
		way.lead(n.server.url())
		return n
	}
	n := life("old ", 40)
	cfg := n.deviceConfig(t, "bo", "phone", func(c *client.Config) {
		c.HTTPClient = way.client(t)
		c.Token = func(context.Context) (string, error) { return token, nil }
	})
	bo := begin(t, cfg)
	reaches(t, bo, "room", 41)
	_ = bo.Close()
	if err := n.stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	first := n.store.Epoch()
	n = life("new ", 10)
	if n.store.Epoch() != first {
		t.Fatalf("epochs %d and %d: this shows nothing", first, n.store.Epoch())
	}
	bo = begin(t, cfg)
	poll(t, "the device to hold what is there", func() bool {
		cur, _, err := bo.Cursor("room")
		return err == nil && cur.Seq == 11
	})
	sameAsTable(t, n.url, bo, "room")
	write(t, n.url, "room", "ana", "then ", 40)
	reaches(t, bo, "room", 51)
	sameAsTable(t, n.url, bo, "room")
}
