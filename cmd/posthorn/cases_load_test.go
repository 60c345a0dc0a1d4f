package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/wire"
)

// talker is a device that sends without pause, a few messages at a time, and remembers what it was told.
type talker struct {
	*client.Client
	conv string

	mu     sync.Mutex // guards what follows
	queued []*client.Pending
	hellos []time.Time
	byes   []wire.Bye
	byeAt  []time.Time
	errors map[posthorn.Code]int
	dups   int
	lost   int // times that it was not online any more
	online bool
	done   int // of queued, the first ones, which were answered
}

func (k *talker) Stored(int, time.Duration) {}

func (k *talker) State(s client.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.Phase == client.Online {
		k.online = true
	} else if k.online {
		k.lost++
	}
}

func (k *talker) Frame(d client.Direction, f wire.Frame, _ []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch f := f.(type) {
	case *wire.Hello:
		k.hellos = append(k.hellos, time.Now())
	case *wire.Bye:
		k.byes, k.byeAt = append(k.byes, *f), append(k.byeAt, time.Now())
	case *wire.Error:
		if k.errors == nil {
			k.errors = map[posthorn.Code]int{}
		}
		k.errors[f.Code]++
	case *wire.Sent:
		if d == client.In && f.Dup {
			k.dups++
		}
	}
}

// crowd is many talkers in groups of ten.
type crowd struct {
	talkers []*talker
	stop    context.CancelFunc
	talking sync.WaitGroup
}

// newCrowd signs in n users and has them talk until hush.
func newCrowd(t *testing.T, home *node, n int, edit func(*client.Config)) *crowd {
	t.Helper()
	c := &crowd{}
	opener := home.connect(t, "opener", "phone")
	for i := range n {
		k := &talker{}
		k.Client = home.device(t, fmt.Sprint("u", i), "phone", edit, func(cfg *client.Config) { cfg.Tracer = k })
		c.talkers = append(c.talkers, k)
	}
	for from := 0; from < n; from += 10 {
		var members []string
		group := c.talkers[from:min(from+10, n)]
		for i := range group {
			members = append(members, fmt.Sprint("u", from+i))
		}
		conv := opener.group(fmt.Sprint("open", from), members...)
		for _, k := range group {
			k.conv = conv
		}
	}
	_ = opener.Close()
	var ctx context.Context
	ctx, c.stop = context.WithCancel(t.Context())
	t.Cleanup(func() {
		c.stop()
		c.talking.Wait()
	})
	for _, k := range c.talkers {
		c.talking.Go(func() { k.talk(ctx, t) })
	}
	return c
}

func (k *talker) talk(ctx context.Context, t *testing.T) {
	const window = 3
	for i := 0; ctx.Err() == nil; i++ {
		p, err := k.Send(context.WithoutCancel(ctx), k.conv, client.Message{Body: fmt.Sprint(i)})
		if err != nil {
			t.Errorf("send: %v", err)
			return
		}
		k.mu.Lock()
		k.queued = append(k.queued, p)
		oldest := k.queued[max(0, len(k.queued)-window)]
		k.mu.Unlock()
		_, _ = oldest.Wait(ctx)
	}
}

// sent counts what was answered so far.
func (c *crowd) sent() (n int) {
	for _, k := range c.talkers {
		k.mu.Lock()
		for _, p := range k.queued[min(len(k.queued), k.done):] {
			select {
			case <-p.Done():
				k.done++
				continue
			default:
			}
			break
		}
		n += k.done
		k.mu.Unlock()
	}
	return n
}

// more waits until n further sends were answered.
func (c *crowd) more(t *testing.T, n int) {
	t.Helper()
	want := c.sent() + n
	poll(t, fmt.Sprint(n, " further answers"), func() bool { return c.sent() >= want })
}

// hush stops the talk, waits for every answer and compares: each sent has its row, each message one row.
// super reaches the database as a superuser.
func (c *crowd) hush(t *testing.T, super string) {
	t.Helper()
	c.stop()
	c.talking.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var told []string
	for i, k := range c.talkers {
		for _, p := range k.queued {
			s, err := p.Wait(ctx)
			if err != nil {
				t.Fatalf("u%d: %s was not answered: %v (state %+v)", i, p.Cmid, err, k.Client.State())
			}
			told = append(told, fmt.Sprint(s.Conv, " ", s.Seq, " ", s.Mid, " ", p.Cmid))
		}
		if n := len(k.Outbox()) + len(k.Failed()); n > 0 {
			t.Errorf("u%d: %d items are left", i, n)
		}
	}
	rows := row[[]string](t, super, "select array_agg(conv_id || ' ' || seq || ' ' || mid || ' ' || cmid) from posthorn.events where kind = 'msg'")
	slices.Sort(told)
	slices.Sort(rows)
	if !slices.Equal(told, rows) {
		t.Errorf("%d answers and %d rows, which differ", len(told), len(rows))
	}
}

// row reads one value from any cluster.
func row[T any](t *testing.T, url, query string) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}
