package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// What several cases need: eyes on the wire, devices of the SDK, a way to move them to another gateway.

// tap sees the frames of a connection in the order of the wire, and a client's states. Reading waits while it looks.
type tap struct {
	frame func(client.Direction, wire.Frame, []byte)
	state func(client.State)
}

func (x tap) Frame(d client.Direction, f wire.Frame, raw []byte) {
	if x.frame != nil {
		x.frame(d, f, raw)
	}
}

func (x tap) Stored(int, time.Duration) {}

func (x tap) State(s client.State) {
	if x.state != nil {
		x.state(s)
	}
}

// connectWith is connect with dial options of its own.
func (n *node) connectWith(t *testing.T, user, device string, opts client.DialOptions) *peer {
	t.Helper()
	p := n.dial(t, &opts)
	p.welcome = ask[*wire.Welcome](p, &wire.Hello{Token: n.token(t, user, device), Device: device})
	return p
}

// dialTo logs a new user's device in on another server of the same database.
func (n *node) dialTo(t *testing.T, url string, opts client.DialOptions) *peer {
	t.Helper()
	c, err := client.Dial(t.Context(), url, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p := &peer{Conn: c, t: t}
	p.welcome = ask[*wire.Welcome](p, &wire.Hello{Token: n.token(t, "witness", "phone"), Device: "phone"})
	return p
}

// device is the SDK on a store of its own, connected.
func (n *node) device(t *testing.T, user, device string, edit ...func(*client.Config)) *client.Client {
	t.Helper()
	return begin(t, n.deviceConfig(t, user, device, edit...))
}

// begin opens and starts a device that is closed at the end of the test.
func begin(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return c
}

func (n *node) deviceConfig(t *testing.T, user, device string, edit ...func(*client.Config)) client.Config {
	t.Helper()
	token := n.token(t, user, device)
	cfg := client.Config{URL: n.server.url(), Device: device, StorePath: filepath.Join(t.TempDir(), "store"),
		Token: func(context.Context) (string, error) { return token, nil }}
	for _, f := range edit {
		f(&cfg)
	}
	return cfg
}

// road leads every new connection to the gateway of the moment, as a load balancer does.
type road struct {
	mu sync.Mutex
	to string
}

func (r *road) lead(url string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = url[len("http://"):]
}

// client dials along the road, whatever address it is given.
func (r *road) client(t *testing.T) *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		r.mu.Lock()
		to := r.to
		r.mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// reaches waits until a device holds a conversation up to seq.
func reaches(t *testing.T, c *client.Client, conv string, seq int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.WaitCursor(ctx, conv, seq); err != nil {
		cur, _, _ := c.Cursor(conv)
		t.Fatalf("%s: cursor %+v, want %d: %v (state %+v)", conv, cur, seq, err, c.State())
	}
}

// local is what a device holds of a conversation.
func local(t *testing.T, c *client.Client, conv string) (all []posthorn.Event) {
	t.Helper()
	for ev, err := range c.Events(t.Context(), conv, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ev)
	}
	return all
}

// sameAsTable compares what a device holds with the rows: place, id and body of every event.
func sameAsTable(t *testing.T, url string, c *client.Client, conv string) {
	t.Helper()
	var got []string
	for _, ev := range local(t, c, conv) {
		body := ""
		if ev.Body != nil {
			body = *ev.Body
		}
		got = append(got, ev.Mid+" "+body)
		if ev.Seq != int64(len(got)) {
			t.Fatalf("event %d stands in place %d", ev.Seq, len(got))
		}
	}
	want := pgtest.Query[[]string](t, url, "select array_agg(mid || ' ' || coalesce(body, '') order by seq) from posthorn.events where conv_id = $1", conv)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: the device holds %d events, the table %d, or others:\n%q\n%q", conv, len(got), len(want), got, want)
	}
}

// write has SQL send n messages of a user, which is quick.
func write(t *testing.T, url, conv, sender, prefix string, n int) {
	t.Helper()
	pgtest.Exec(t, url, "select s.seq from generate_series(1, $4) i, lateral posthorn.send($1, $2, $3 || i, $3 || i) s", conv, sender, prefix, n)
}
