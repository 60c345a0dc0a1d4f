package lab

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// link is the network between clients and one gateway. It can swallow what the server says, and cut every connection.
type link struct {
	url   string
	to    string
	l     net.Listener
	muted atomic.Bool

	mu     sync.Mutex // guards what follows
	open   map[net.Conn]struct{}
	closed bool
	wg     sync.WaitGroup
}

// link opens one before a gateway.
func (t *trial) link(g *gateway) *link {
	l, err := (&net.ListenConfig{}).Listen(t.ctx, "tcp", "127.0.0.1:0")
	t.must(err)
	k := &link{url: "http://" + l.Addr().String(), to: g.url[len("http://"):], l: l, open: map[net.Conn]struct{}{}}
	t.cleanup(k.close)
	k.wg.Go(k.accept)
	return k
}

func (k *link) accept() {
	for {
		c, err := k.l.Accept()
		if err != nil {
			return
		}
		s, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", k.to)
		if err != nil || !k.add(c, s) {
			_ = c.Close()
			if s != nil {
				_ = s.Close()
			}
			continue
		}
		k.wg.Go(func() { k.carry(s, c, false) })
		k.wg.Go(func() { k.carry(c, s, true) })
	}
}

func (k *link) add(conns ...net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	for _, c := range conns {
		k.open[c] = struct{}{}
	}
	return true
}

// carry moves bytes one way until either end closes. Muted, the server's bytes are read and thrown away: the server has
// said it, and nobody has heard.
func (k *link) carry(to, from net.Conn, fromServer bool) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !(fromServer && k.muted.Load()) {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = io.ErrClosedPipe
			}
		}
		if err != nil {
			k.mu.Lock()
			delete(k.open, from)
			k.mu.Unlock()
			return
		}
	}
}

// mute swallows everything that the server says from now on.
func (k *link) mute() { k.muted.Store(true) }

// cut ends all connections; those that come afterwards are whole.
func (k *link) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.open {
		_ = c.Close()
	}
	k.muted.Store(false)
}

func (k *link) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	_ = k.l.Close()
	k.cut()
	k.wg.Wait()
}
