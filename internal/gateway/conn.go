package gateway

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	heldBytes   = 64 << 10 // written by one system call at most
	chunkBytes  = 32 << 10 // has the write deadline for itself, so that a slow line may take long over a long frame
	writerBytes = 1 << 10  // the library's own write buffer; it only carries small frames to hold
	lingerBytes = 1 << 20  // read and thrown away while a close frame is on its way
	closeGrace  = time.Second
)

var errLingered = errors.New("the peer went on sending after the close")

// rawConn stands between the WebSocket library and the network, for what the library does not offer: several messages in
// one system call, deadlines without a timer per call, the time of the last byte, and an end that cannot hang.
type rawConn struct {
	net.Conn
	patience time.Duration // a chunk must be gone within it
	heard    atomic.Int64  // when the last bytes came, Unix nanoseconds
	hurried  atomic.Int64  // no write may last longer, Unix nanoseconds; 0: no such bound
	left     atomic.Int64  // bytes that may still be read; 0: unbounded

	mu     sync.Mutex // guards what follows and the order of bytes on the wire
	corked bool
	held   *[]byte
	err    error // the first one; nothing is written after it

	readMu    sync.Mutex // guards lingering and the read deadline
	lingering bool
}

var heldPool = sync.Pool{New: func() any { b := make([]byte, 0, heldBytes); return &b }}

func (c *rawConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
		if c.left.Load() != 0 && c.left.Add(-int64(n)) <= 0 {
			c.left.Store(-1)
			return 0, errLingered
		}
	}
	return n, err
}

func (c *rawConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if !c.corked {
		return len(p), c.send(p)
	}
	if len(*c.held)+len(p) > heldBytes {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) > heldBytes {
		return len(p), c.send(p)
	}
	*c.held = append(*c.held, p...)
	return len(p), nil
}

// cork holds back what is written until uncork.
func (c *rawConn) cork() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.corked, c.held = true, heldPool.Get().(*[]byte)
}

func (c *rawConn) uncork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.flush()
	heldPool.Put(c.held)
	c.corked, c.held = false, nil
	return err
}

// push writes what is held back and stays corked.
func (c *rawConn) push() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.flush() // uncork tells
}

func (c *rawConn) flush() error {
	if c.err == nil && len(*c.held) > 0 {
		_ = c.send(*c.held)
	}
	*c.held = (*c.held)[:0]
	return c.err
}

func (c *rawConn) send(p []byte) error {
	for len(p) > 0 && c.err == nil {
		chunk := p[:min(len(p), chunkBytes)]
		until := time.Now().Add(c.patience)
		_ = c.SetWriteDeadline(until)
		if h := c.hurried.Load(); h != 0 && h < until.UnixNano() {
			_ = c.SetWriteDeadline(time.Unix(0, h))
		}
		_, c.err = c.Conn.Write(chunk)
		p = p[len(chunk):]
	}
	return c.err
}

// hurry bounds all writing from now on, also the one under way. It does not block.
func (c *rawConn) hurry(d time.Duration) {
	until := time.Now().Add(d)
	if c.hurried.CompareAndSwap(0, until.UnixNano()) { // stored before it is set: send looks after setting its own
		_ = c.SetWriteDeadline(until)
	}
}

// readBy sets the read deadline, unless the connection already lingers; the zero time removes it.
func (c *rawConn) readBy(t time.Time) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if !c.lingering {
		_ = c.SetReadDeadline(t)
	}
}

// linger bounds the reading that the close handshake does, in time and bytes. Closing with unread input would reset the
// connection, and the peer might never see why; reading it without a bound would let the peer keep the connection.
func (c *rawConn) linger() {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	c.lingering = true
	c.left.CompareAndSwap(0, lingerBytes)
	_ = c.SetReadDeadline(time.Now().Add(closeGrace))
}

// abort closes without a word: a TLS connection would wait for its own farewell to be taken.
func (c *rawConn) abort() {
	nc := c.Conn
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = t.NetConn()
	}
	_ = nc.Close()
}

// hijacker slips a rawConn under the library.
type hijacker struct {
	http.ResponseWriter
	s   *socket
	raw *rawConn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, brw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.raw = &rawConn{Conn: c, patience: h.s.g.limits.WriteDeadline}
	h.raw.heard.Store(time.Now().UnixNano())
	return h.raw, bufio.NewReadWriter(brw.Reader, bufio.NewWriterSize(h.raw, writerBytes)), nil
}
