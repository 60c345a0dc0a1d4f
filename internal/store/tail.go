package store

import (
	"sync"
	"time"
)

// tail remembers up to where the log was read, as a snapshot: it asks for what has become visible since. Transactions that
// ran then and have committed now are in, whatever their order, and nothing is read twice.
type tail struct {
	bells chan struct{} // capacity 1: look again

	// Read by the tail's goroutine only.
	last     string // pg_snapshot up to which everything was read; "" before the first look
	mark     string // the boot mark for which last is valid
	timeline string // and the insertion timeline

	mu       sync.Mutex // guards what follows
	batches  int64
	inflight map[int64][]commitRow // own batches without an answer yet, with the rows that the tail met meanwhile
	unknown  map[int64]bool        // own batches whose outcome stayed unknown: their rows are read like a stranger's
	late     []commitRow           // rows of batches that turned out unknown after the tail had met them
	pids     map[uint32]bool       // backends of our own batches: their bells wake nothing
	stuck    time.Time             // since when no reading has succeeded; zero: the last one has
	readAt   time.Time             // when the tail last read successfully
	readOnly bool                  // what it said then
}

// maxUnknown bounds the memory of batches whose outcome stayed unknown; beyond it the oldest rows are found by heads.
const maxUnknown = 10_000

type commitRow struct {
	origin string
	batch  int64
	convs  []string
	first  []int64
	last   []int64
	users  []string
}

func (t *tail) init() {
	t.bells = make(chan struct{}, 1)
	t.inflight = map[int64][]commitRow{}
	t.unknown = map[int64]bool{}
	t.pids = map[uint32]bool{}
}

// begun notes that a reading is tried.
func (t *tail) begun() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stuck.IsZero() {
		t.stuck = time.Now()
	}
}

// reads tells whether readings succeed; one may take a while.
func (t *tail) reads(patience time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stuck.IsZero() || time.Since(t.stuck) < patience
}

func (t *tail) wake() { poke(t.bells) }

// begin numbers a batch and marks it in flight, before its transaction begins: from now on its rows are not read as a
// stranger's.
func (t *tail) begin() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches++
	t.inflight[t.batches] = nil
	return t.batches
}

// end: the batch was answered, so its events are on their way from memory; or its outcome is unknown, and the log tells.
func (t *tail) end(batch int64, unknown bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := t.inflight[batch]
	delete(t.inflight, batch)
	if !unknown {
		return
	}
	if len(rows) == 0 && len(t.unknown) < maxUnknown {
		t.unknown[batch] = true
	}
	t.late = append(t.late, rows...)
	poke(t.bells)
}

// newest is the number of the newest batch.
func (t *tail) newest() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.batches
}

// oldest is the number of the oldest batch in flight; above all of them where there is none.
func (t *tail) oldest() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.batches + 1
	for b := range t.inflight {
		n = min(n, b)
	}
	return n
}

// mine sorts out a row of our own: true when its events need not be read.
func (t *tail) mine(r commitRow) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if held, ok := t.inflight[r.batch]; ok {
		t.inflight[r.batch] = append(held, r)
		return true
	}
	if t.unknown[r.batch] {
		delete(t.unknown, r.batch)
		return false
	}
	return true
}

func (t *tail) takeLate() []commitRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.late
	t.late = nil
	return late
}

// own notes the backend behind a writer, so that its bells wake nothing here.
func (t *tail) own(w *writer, pid uint32) {
	if w.pid == pid || w.s.pooled.Load() { // behind a pooler the same backend rings for others too
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pids, w.pid)
	t.pids[pid] = true
	w.pid = pid
}
