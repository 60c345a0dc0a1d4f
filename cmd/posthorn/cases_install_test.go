package main

import (
	"os"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// An honest crash is no clone: a device that ends between its welcome and its store, again and again, stays the install
// that it was, keeps its log, and syncs nothing twice.
func TestI1_HaltBetweenWelcomeAndStore(t *testing.T) {
	n := serve(t, pgtest.URL(t))
	ana := n.connect(t, "ana", "phone")
	cfg := n.deviceConfig(t, "bo", "phone")
	conv := ana.group("open", "bo")
	ana.send(conv, "m", "before")
	d := doom{URL: cfg.URL, Device: "phone", Store: cfg.StorePath, Frame: "welcome", Way: client.In}
	d.Token, _ = cfg.Token(t.Context())

	d.die(t) // a store that never had an install: whatever it was given is not known to it
	live := func() (*client.Client, client.State) {
		c := begin(t, cfg)
		reaches(t, c, conv, pgtest.Query[int64](t, n.url, "select max(seq) from posthorn.events where conv_id = $1", conv))
		return c, c.State()
	}
	bo, first := live()
	_ = bo.Close()
	for range rounds(10, 100) {
		d.die(t)
	}
	ana.send(conv, "m2", "after")
	synced := map[int64]int{}
	cfg.Tracer = tap{frame: func(way client.Direction, f wire.Frame, _ []byte) {
		if p, ok := f.(*wire.Page); ok && way == client.In {
			for _, ev := range p.Page.Events {
				synced[ev.Seq]++
			}
		}
	}}
	bo, last := live()
	sameAsTable(t, n.url, bo, conv)
	_ = bo.Close()
	if last.Install != first.Install {
		t.Errorf("install %d became %d", first.Install, last.Install)
	}
	if synced[1]+synced[2] > 0 {
		t.Errorf("synced again what it held: %v", synced)
	}
	if stored := pgtest.Query[int64](t, n.url, "select install_epoch from posthorn.devices where user_id = 'bo'"); stored != first.Install {
		t.Errorf("the server has install %d, the device %d", stored, first.Install)
	}
}

// A copied store that is started beside its original shows by its nonce: it becomes an install of its own and begins
// anew, the original steps back; and whoever lives ends with the whole log.
func TestI1_CopiedStoreStartedTwice(t *testing.T) {
	n := serve(t, pgtest.URL(t))
	ana := n.connect(t, "ana", "phone")
	original := n.deviceConfig(t, "bo", "phone")
	conv := ana.group("open", "bo")
	ana.send(conv, "m1", "one")
	bo := begin(t, original)
	reaches(t, bo, conv, 2)
	_ = bo.Close()
	image, err := os.ReadFile(original.StorePath)
	if err != nil {
		t.Fatal(err)
	}
	copied := original
	copied.StorePath += "-copy"
	if err := os.WriteFile(copied.StorePath, image, 0o600); err != nil {
		t.Fatal(err)
	}

	bo = begin(t, original)
	ana.send(conv, "m2", "two")
	reaches(t, bo, conv, 3)
	if s := bo.State(); s.Install != 1 {
		t.Fatalf("the original: %+v", s)
	}
	poll(t, "the nonce of the copy to be void", func() bool { // with the next flush after the first frame
		return pgtest.Query[bool](t, n.url, "select resume_prev is null from posthorn.devices where user_id = 'bo'")
	})
	cl := begin(t, copied)
	ana.send(conv, "m3", "three")
	reaches(t, cl, conv, 4)
	if s := cl.State(); s.Install != 2 {
		t.Errorf("the copy: %+v", s)
	}
	if cur, _, _ := cl.Cursor(conv); cur.Install != 2 {
		t.Errorf("the copy's cursor: %+v", cur)
	}
	sameAsTable(t, n.url, cl, conv)
	poll(t, "the original to step back", func() bool { return bo.State().Phase == client.Replaced })
	if p, err := bo.Send(t.Context(), conv, client.Message{Body: "from the original"}); err != nil || p == nil {
		t.Fatal(err) // it waits in its outbox
	}

	// Its owner takes the original up again: its install is stale, so it becomes the third, and the copy steps back.
	bo.Reconnect()
	reaches(t, bo, conv, 5)
	poll(t, "the copy to step back", func() bool { return cl.State().Phase == client.Replaced })
	if s := bo.State(); s.Install != 3 || s.Phase != client.Online {
		t.Errorf("the original: %+v", s)
	}
	sameAsTable(t, n.url, bo, conv)
	if s := cl.State(); posthorn.AsError(s.Err).Code != posthorn.CodeReplaced {
		t.Errorf("the copy: %+v", s)
	}
	cl.Reconnect()
	reaches(t, cl, conv, 5)
	sameAsTable(t, n.url, cl, conv)
	if rows := pgtest.Query[int64](t, n.url, "select count(*) from posthorn.events where conv_id = $1", conv); rows != 5 {
		t.Errorf("%d rows, want 5: what the original had queued came once", rows)
	}
}
