package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// What a record tells of. In and Out are frames as the client saw them; the others are said by the lab or by a device.
const (
	In      = "in"      // a frame that was read
	Out     = "out"     // a frame that is about to be written
	Applied = "applied" // an event is on the device's disk, without a hole below it
	Held    = "held"    // found on the device's disk when it started, or when it was asked
	Queued  = "queued"  // an item is in the device's outbox, on disk
	Settled = "settled" // an item was answered for good
	Pending = "pending" // an item that was still in the outbox when the device was asked
	State   = "state"   // the phase of a device's connection
	Cursor  = "cursor"  // a row of device_cursors, as the sampler saw it change
	Lost    = "lost"    // from here on something is known not to reach Who
	Crash   = "crash"   // something was killed
	Rewound = "rewound" // the database is another one from here on: what was committed may be gone
	Started = "started"
	Exited  = "exited"
	Note    = "note"
)

// Record is one line of a history. Who is a device ("bo/phone"), a gateway ("A") or "lab". Fields that do not belong to
// What and Type are zero.
type Record struct {
	At   time.Time `json:"at"`
	Who  string    `json:"who"`
	What string    `json:"what"`
	Type string    `json:"type,omitempty"` // of a frame

	Conv      string `json:"conv,omitempty"`
	Seq       int64  `json:"seq,omitempty"`
	Prev      int64  `json:"prev,omitempty"`
	Mid       string `json:"mid,omitempty"`
	Cmid      string `json:"cmid,omitempty"` // of replies too: found by their rid
	RID       string `json:"rid,omitempty"`
	Dup       bool   `json:"dup,omitempty"`
	Delivered int64  `json:"delivered,omitempty"`
	Head      int64  `json:"head,omitempty"`
	Start     int64  `json:"start,omitempty"`
	Upto      int64  `json:"upto,omitempty"`
	Install   int64  `json:"install,omitempty"`
	Epoch     int64  `json:"epoch,omitempty"`
	Why       string `json:"why,omitempty"`
	Code      string `json:"code,omitempty"`
	Text      string `json:"text,omitempty"`
	Events    []Ref  `json:"events,omitempty"` // of a page
}

// Ref names an event in a page.
type Ref struct {
	Seq int64  `json:"seq"`
	Mid string `json:"mid"`
}

// user of a record's device, and the device without the connection that a peer's name may carry ("bo/phone@A").
func (r *Record) user() string   { return userOf(r.Who) }
func (r *Record) device() string { return deviceOf(r.Who) }

func userOf(who string) string {
	user, _, ok := strings.Cut(who, "/")
	if !ok {
		return ""
	}
	return user
}

func deviceOf(who string) string {
	device, _, _ := strings.Cut(who, "@")
	return device
}

// frame tells whether the record is a frame of this direction and type.
func (r *Record) frame(dir, typ string) bool { return r.What == dir && r.Type == typ }

// History is what happened, in the order in which the lab heard of it; the lines of one process keep their order.
type History struct {
	mu      sync.Mutex // guards what follows
	all     []Record
	changed chan struct{} // closed and replaced at each line
}

func newHistory() *History { return &History{changed: make(chan struct{})} }

// Add writes a line; a zero At is now.
func (h *History) Add(r Record) {
	if r.At.IsZero() {
		r.At = time.Now()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, r)
	close(h.changed)
	h.changed = make(chan struct{})
}

// Records copies the lines so far.
func (h *History) Records() []Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Record(nil), h.all...)
}

// find gives the lines that fit.
func (h *History) find(fits func(*Record) bool) []Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Record
	for i := range h.all {
		if fits(&h.all[i]) {
			out = append(out, h.all[i])
		}
	}
	return out
}

func (h *History) count(fits func(*Record) bool) int { return len(h.find(fits)) }

// await waits until n lines fit, and gives them.
func (h *History) await(ctx context.Context, n int, fits func(*Record) bool) ([]Record, error) {
	for {
		h.mu.Lock()
		changed := h.changed
		h.mu.Unlock()
		if found := h.find(fits); len(found) >= n {
			return found, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// write puts the history down, one JSON object a line.
func (h *History) write(w io.Writer) error {
	enc := json.NewEncoder(w)
	for _, r := range h.Records() {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// String is the line as people read it.
func (r *Record) String() string {
	var b strings.Builder
	b.WriteString(r.What)
	put := func(name string, v any) {
		switch x := v.(type) {
		case string:
			if x == "" {
				return
			}
		case int64:
			if x == 0 {
				return
			}
		case bool:
			if !x {
				return
			}
		}
		fmt.Fprintf(&b, " %s=%v", name, v)
	}
	if r.Type != "" {
		b.WriteString(" " + r.Type)
	}
	for _, f := range []struct {
		name string
		v    any
	}{{"seq", r.Seq}, {"prev", r.Prev}, {"dup", r.Dup}, {"delivered", r.Delivered}, {"head", r.Head}, {"start", r.Start}, {"upto", r.Upto},
		{"install", r.Install}, {"why", r.Why}, {"code", r.Code}, {"cmid", r.Cmid}, {"text", r.Text}} {
		put(f.name, f.v)
	}
	if len(r.Events) > 0 {
		fmt.Fprintf(&b, " events=%d..%d", r.Events[0].Seq, r.Events[len(r.Events)-1].Seq)
	}
	return b.String()
}
