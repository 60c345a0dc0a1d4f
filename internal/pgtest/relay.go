package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Relay is a network between a program and its database that can freeze: bytes stop, and nobody is told.
type Relay struct {
	URL string // leads through it

	to string // the Unix socket
	l  net.Listener
	wg sync.WaitGroup

	mu     sync.Mutex // guards what follows
	thawed chan struct{}
	open   map[net.Conn]struct{}
	closed bool
}

// NewRelay opens one before the database of a URL, which leads to a Unix socket.
func NewRelay(t testing.TB, raw string) *Relay {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal("the URL cannot be read")
	}
	q := u.Query()
	r := &Relay{to: fmt.Sprintf("%s/.s.PGSQL.%s", q.Get("host"), q.Get("port")), thawed: make(chan struct{}), open: map[net.Conn]struct{}{}}
	close(r.thawed)
	if r.l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = r.l.Addr().String(), q.Encode()
	r.URL = u.String()
	t.Cleanup(r.close)
	r.wg.Go(r.accept)
	return r
}

// Freeze stops every byte, both ways; connections are still accepted, as by a host that has hung.
func (r *Relay) Freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.thawed:
		r.thawed = make(chan struct{})
	default:
	}
}

// Thaw lets them flow again.
func (r *Relay) Thaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.thawed:
	default:
		close(r.thawed)
	}
}

// Cut ends all connections.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		_ = c.Close()
	}
}

func (r *Relay) close() {
	_ = r.l.Close()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.Thaw()
	r.Cut()
	r.wg.Wait()
}

func (r *Relay) accept() {
	for {
		c, err := r.l.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.serve(c) })
	}
}

func (r *Relay) serve(c net.Conn) {
	defer c.Close()
	s, err := (&net.Dialer{}).DialContext(context.Background(), "unix", r.to)
	if err != nil {
		return
	}
	defer s.Close()
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.open[c], r.open[s] = struct{}{}, struct{}{}
	r.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { r.carry(s, c) })
	both.Go(func() { r.carry(c, s) })
	both.Wait()
	r.mu.Lock()
	delete(r.open, c)
	delete(r.open, s)
	r.mu.Unlock()
}

// carry moves bytes one way until either end closes.
func (r *Relay) carry(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		thawed := r.thawed
		r.mu.Unlock()
		<-thawed
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
