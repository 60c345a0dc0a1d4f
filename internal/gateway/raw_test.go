package gateway

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// rawPeer is a peer that may do what no library does.
type rawPeer struct {
	t testing.TB
	c net.Conn
	r *bufio.Reader
}

func (h *house) raw() *rawPeer {
	h.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.ts.URL, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	return &rawPeer{t: h.t, c: c, r: bufio.NewReader(c)}
}

// ask sends a handshake with these further header lines and gives the response.
func (p *rawPeer) ask(target string, lines ...string) *http.Response {
	p.t.Helper()
	req := "GET " + target + " HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for _, l := range lines {
		req += l + "\r\n"
	}
	if !strings.Contains(req, "\r\nHost:") {
		req += "Host: " + p.c.RemoteAddr().String() + "\r\n"
	}
	if _, err := io.WriteString(p.c, req+"\r\n"); err != nil {
		p.t.Fatal(err)
	}
	res, err := http.ReadResponse(p.r, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return res
}

// upgrade must succeed.
func (p *rawPeer) upgrade(lines ...string) *http.Response {
	p.t.Helper()
	res := p.ask("/api/v1/ws", append(lines, "Sec-WebSocket-Protocol: "+subprotocol)...)
	if res.StatusCode != http.StatusSwitchingProtocols {
		p.t.Fatalf("status %d", res.StatusCode)
	}
	return res
}

const (
	fin  = 0x80
	rsv1 = 0x40
	text = 1
	bin  = 2
)

// frame is one masked frame; the mask is zero, which is legal and leaves the payload as it is.
func rawFrame(head byte, payload []byte) []byte {
	b := []byte{head}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

func (p *rawPeer) write(b []byte) error {
	_, err := p.c.Write(b)
	return err
}

func (p *rawPeer) say(format string, args ...any) {
	p.t.Helper()
	if err := p.write(rawFrame(fin|text, fmt.Appendf(nil, format, args...))); err != nil {
		p.t.Fatal(err)
	}
}

// next reads one frame of the server.
func (p *rawPeer) next() (op byte, payload []byte, err error) {
	var h [2]byte
	if _, err := io.ReadFull(p.r, h[:]); err != nil {
		return 0, nil, err
	}
	n := uint64(h[1])
	switch n {
	case 126:
		var l [2]byte
		_, err = io.ReadFull(p.r, l[:])
		n = uint64(binary.BigEndian.Uint16(l[:]))
	case 127:
		var l [8]byte
		_, err = io.ReadFull(p.r, l[:])
		n = binary.BigEndian.Uint64(l[:])
	}
	if err != nil {
		return 0, nil, err
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(p.r, payload)
	return h[0] & 0xf, payload, err
}

// wantStatus reads until the close frame, which must have this status, and then until the end of the connection.
func (p *rawPeer) wantStatus(status int) {
	p.t.Helper()
	for {
		op, payload, err := p.next()
		if err != nil {
			p.t.Fatalf("no close frame: %v", err)
		}
		if op == 8 {
			if got := int(binary.BigEndian.Uint16(payload)); got != status {
				p.t.Fatalf("closed with %d %q, want %d", got, payload[2:], status)
			}
			break
		}
	}
	_ = p.write(rawFrame(fin|8, []byte{byte(status >> 8), byte(status)}))
	p.wantEnd()
}

// wantEnd reads until the connection ends.
func (p *rawPeer) wantEnd() {
	p.t.Helper()
	if _, err := io.Copy(io.Discard, p.r); err != nil && isTimeout(err) {
		p.t.Fatal("the connection stays open")
	}
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}
