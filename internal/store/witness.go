package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/posthorn/posthorn"
)

const (
	maxPairs   = 1024 // conversations whose head is remembered
	maxBatches = 16   // acknowledged batches: one per lane, and those of processes before this one
)

// witness remembers what the database must still hold: the heads of recent conversations and the newest acknowledged batch
// of each lane. A database cannot see its own rewinding; who has seen it before can. A small file carries the memory over
// a restart.
type witness struct {
	path string // "" : in memory only

	mu    sync.Mutex // guards what follows
	mem   memory
	dirty bool
}

// memory belongs to one sequence space and one epoch of it.
type memory struct {
	Space    string                   `json:"space"`
	Epoch    int64                    `json:"epoch"`
	System   int64                    `json:"system"`
	Timeline string                   `json:"timeline"` // the highest seen
	Gateway  string                   `json:"gateway"`  // whose memory this is: a process that goes on with it speaks for that one too
	Pairs    map[string]posthorn.Pair `json:"pairs"`
	Batches  []batchSeen              `json:"batches"`
}

// batchSeen names a row of event_commits. A lane commits one transaction after the other and WAL is a prefix, so this row
// proves all that the lane acknowledged before it.
type batchSeen struct {
	Lane   string `json:"lane"`
	Origin string `json:"origin"`
	Tx     string `json:"tx"`
	Batch  int64  `json:"batch"`
}

// load reads the file; one that cannot be read is as none: a memory that is lost only means one witness less.
func (w *witness) load(path string) error {
	w.path = path
	w.mem.Pairs = map[string]posthorn.Pair{}
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var m memory
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err == nil && !m.sane() {
		err = errors.New("the file holds what no gateway wrote")
	}
	if err != nil {
		return err
	}
	if m.Pairs == nil {
		m.Pairs = map[string]posthorn.Pair{}
	}
	w.mem = m
	return nil
}

// sane keeps a file that somebody has edited from failing every comparison.
func (m *memory) sane() bool {
	text := func(t string) bool { return utf8.ValidString(t) && !strings.ContainsRune(t, 0) }
	for _, b := range m.Batches {
		if _, ok := number(b.Tx); !ok || !text(b.Origin) {
			return false
		}
	}
	for conv, p := range m.Pairs {
		if !text(conv) || !text(p.Mid) {
			return false
		}
	}
	return text(m.Space) && text(m.Timeline)
}

// save writes the file where something is new. It is not flushed: after a crash of the machine an older memory is as true.
func (w *witness) save() error {
	w.mu.Lock()
	if w.path == "" || !w.dirty {
		w.mu.Unlock()
		return nil
	}
	b, err := json.Marshal(&w.mem)
	w.dirty = false
	w.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(w.path), ".witness-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), w.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		w.mu.Lock()
		w.dirty = true
		w.mu.Unlock()
	}
	return err
}

// saw notes events that were handed on.
func (w *witness) saw(events []posthorn.Committed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range events {
		c := &events[i]
		if c.Epoch != w.mem.Epoch || c.Event.Seq <= w.mem.Pairs[c.Event.Conv].Seq {
			continue
		}
		if _, known := w.mem.Pairs[c.Event.Conv]; !known && len(w.mem.Pairs) >= maxPairs {
			for conv := range w.mem.Pairs { // any: what is asked is a sample
				delete(w.mem.Pairs, conv)
				break
			}
		}
		w.mem.Pairs[c.Event.Conv] = posthorn.Pair{Seq: c.Event.Seq, Mid: c.Event.Mid}
		w.dirty = true
	}
}

// served notes the newest event of a page: somebody may hold it now who was given nothing else.
func (w *witness) served(ev *posthorn.Event, epoch int64) {
	w.saw([]posthorn.Committed{{Event: *ev, Epoch: epoch}})
}

// acknowledged notes the newest committed batch of a lane.
func (w *witness) acknowledged(epoch int64, b batchSeen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if epoch != w.mem.Epoch {
		return
	}
	w.dirty = true
	for i, old := range w.mem.Batches {
		if old.Lane == b.Lane && old.Origin == b.Origin {
			w.mem.Batches[i] = b
			return
		}
	}
	if len(w.mem.Batches) >= maxBatches {
		w.mem.Batches = append(w.mem.Batches[:0], w.mem.Batches[1:]...)
	}
	w.mem.Batches = append(w.mem.Batches, b)
}

// timeline is the highest that was seen, and of which cluster.
func (w *witness) timeline() (system int64, seen string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mem.System, w.mem.Timeline
}

// recall copies the memory for a comparison.
func (w *witness) recall() (m memory) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m = w.mem
	m.Pairs = make(map[string]posthorn.Pair, len(w.mem.Pairs))
	for conv, p := range w.mem.Pairs {
		m.Pairs[conv] = p
	}
	m.Batches = append([]batchSeen(nil), w.mem.Batches...)
	return m
}

// adopt begins the memory of another epoch, or goes on with this one.
func (w *witness) adopt(gateway, space string, epoch, system int64, timeline string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mem.Space != space || w.mem.Epoch != epoch {
		w.mem.Pairs, w.mem.Batches = map[string]posthorn.Pair{}, nil
	}
	if w.mem.System != system {
		w.mem.Batches = nil // their transaction ids are another cluster's
	}
	w.mem.Gateway = gateway
	w.mem.Space, w.mem.Epoch, w.mem.System, w.mem.Timeline = space, epoch, system, timeline
	w.dirty = true
}
