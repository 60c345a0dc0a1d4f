package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/wire"
)

// appendLine writes an event as one line of JSON. What JSON allows inside of strings but a terminal would obey, C1 controls
// and bidi overrides, is escaped; data with line ends between its tokens is put on one line.
func appendLine(b []byte, ev *posthorn.Event) []byte {
	var line bytes.Buffer
	if err := json.Compact(&line, wire.AppendEventBody(nil, ev)); err != nil {
		panic(err) // what the wire package wrote is JSON
	}
	for _, r := range line.String() {
		if r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029 {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '\n')
}

// listedHeads notes how far the conversations reached when this device first saw the list: events up to there are old news
// to somebody who asked for what comes. A conversation that begins later is in no list and is written from its first event.
type listedHeads struct {
	mu    sync.Mutex // guards what follows
	heads map[string]int64
	done  bool
}

func (h *listedHeads) of(conv string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heads[conv]
}

// Frame sees the list before anything of it is stored.
func (h *listedHeads) Frame(_ client.Direction, f wire.Frame, _ []byte) {
	list, ok := f.(*wire.Subbed)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done {
		return
	}
	for _, e := range list.Convs {
		h.heads[e.Conv] = e.Head
	}
	h.done = list.Next == ""
}

func (h *listedHeads) Stored(int, time.Duration) {}
func (h *listedHeads) State(client.State)        {}
