package store

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
)

// tail remembers up to where the log was read, as a snapshot: it asks for what has become visible since. Transactions that
// ran then and have committed now are in, whatever their order, and nothing is read twice.
type tail struct {
	bells chan struct{} // capacity 1: look again

	// Read by the tail's goroutine only.
	last string // pg_snapshot up to which everything was read; "" before the first look
	mark string // the boot mark for which last is valid

	mu       sync.Mutex // guards what follows
	batches  int64
	inflight map[int64][]commitRow // own batches without an answer yet, with the rows that the tail met meanwhile
	unknown  map[int64]bool        // own batches whose outcome stayed unknown: their rows are read like a stranger's
	late     []commitRow           // rows of batches that turned out unknown after the tail had met them
	pids     map[uint32]bool       // backends of our own batches: their bells wake nothing
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

// WakeTail asks the tail to read at once.
func (s *Store) WakeTail() { s.tail.wake() }

// ring is the doorbell. Our own batches are fanned out from memory.
func (s *Store) ring(pid uint32, _ string) {
	s.tail.mu.Lock()
	own := pid != 0 && s.tail.pids[pid]
	s.tail.mu.Unlock()
	if !own {
		s.tail.wake()
	}
}

// runTail reads at each bell, and by a poll that slows down from the smallest to the largest interval while nothing comes.
func (s *Store) runTail() {
	wait := s.cfg.Limits.TailPollMin
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-s.tail.bells:
		case <-timer.C:
		}
		n, err := s.drain()
		switch {
		case err != nil:
			s.stats.tailErrors.Add(1)
			s.warnTail(err)
			wait = s.cfg.Limits.TailPollMax
		case n > 0:
			wait = s.cfg.Limits.TailPollMin
		default:
			wait = min(2*wait, s.cfg.Limits.TailPollMax)
		}
		timer.Reset(wait)
	}
}

// warnTail writes at most one line a second.
func (s *Store) warnTail(err error) {
	if now := time.Now().Unix(); s.stats.lastWarn.Swap(now) != now {
		s.log.Warn("the log tail cannot be read; trying again", "error", err)
	}
}

// drain reads what became visible since last and hands it on; n counts commit rows.
func (s *Store) drain() (n int, err error) {
	ctx, cancel := context.WithTimeout(s.hard, 10*time.Second)
	defer cancel()
	look, err := s.look(ctx)
	if err != nil {
		return 0, err
	}
	s.epoch.Store(look.epoch)
	if look.mark == "" {
		// A crash recovery emptied the mark. Whoever finds none puts one; the next look sees it.
		if _, err := s.pool.Exec(ctx, s.sql(putBootSQL)); err != nil {
			return 0, err
		}
		s.tail.wake()
		return 0, nil
	}
	if s.tail.last == "" || s.tail.mark != look.mark {
		return 0, s.restart(ctx, look)
	}
	for _, device := range look.revoked { // first: what fails below is tried again, these would be lost
		s.cfg.Fanout.Revoked(device)
	}
	rows := append(s.tail.takeLate(), look.rows...)
	if err := s.handOn(ctx, rows); err != nil {
		s.tail.mu.Lock()
		s.tail.late = append(rows, s.tail.late...)
		s.tail.mu.Unlock()
		s.tail.last = look.snapshot
		return 0, err
	}
	s.tail.last = look.snapshot
	s.touch(look)
	return len(rows) + len(look.revoked), nil
}

// touch notes a reading for Ready.
func (s *Store) touch(l *look) {
	s.tail.mu.Lock()
	s.tail.readAt, s.tail.readOnly = time.Now(), l.readOnly
	s.tail.mu.Unlock()
}

// restart trusts no remembered transaction id: after a crash PostgreSQL hands out again those whose WAL was not flushed.
// It takes the fresh snapshot and compares the heads of all conversations with local listeners.
func (s *Store) restart(ctx context.Context, look *look) error {
	if s.tail.last != "" {
		s.log.Warn("PostgreSQL has recovered from a crash; comparing heads")
	}
	if err := s.compareHeads(ctx); err != nil {
		return err
	}
	s.tail.last, s.tail.mark = look.snapshot, look.mark
	s.touch(look)
	s.tail.wake()
	return nil
}

// compareHeads reads what the listeners of this process lack, by (conv, seq).
func (s *Store) compareHeads(ctx context.Context) error {
	heads := s.cfg.Fanout.Heads()
	if len(heads) == 0 {
		return nil
	}
	convs := make([]string, 0, len(heads))
	for c := range heads {
		convs = append(convs, c)
	}
	rows, err := s.pool.Query(ctx, s.sql(headsSQL), convs)
	if err != nil {
		return err
	}
	var r commitRow
	var conv string
	var head int64
	_, err = pgx.ForEachRow(rows, []any{&conv, &head}, func() error {
		switch have := heads[conv]; {
		case head > have:
			r.convs, r.first, r.last = append(r.convs, strings.Clone(conv)), append(r.first, have+1), append(r.last, head)
		case head < have:
			s.log.Error("a conversation is shorter than what was pushed of it: the database was rewound", "conv", conv, "head", head, "pushed", have)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.stats.repaired.Add(int64(len(r.convs)))
	return s.readOut(ctx, r.convs, r.first, r.last)
}

// look is one reading of the tail, all of it from one snapshot.
type look struct {
	snapshot string
	mark     string
	epoch    int64
	readOnly bool
	rows     []commitRow
	revoked  []int64
}

func (s *Store) look(ctx context.Context) (*look, error) {
	var last *string
	if s.tail.last != "" {
		last = &s.tail.last
	}
	rows, err := s.pool.Query(ctx, s.sql(tailSQL), last)
	if err != nil {
		return nil, err
	}
	l := &look{}
	var mark, source, origin *string
	var batch, device *int64
	var r commitRow
	_, err = pgx.ForEachRow(rows, []any{&l.snapshot, &mark, &l.epoch, &l.readOnly, &source, &origin, &batch, &r.convs, &r.first, &r.last, &r.users, &device}, func() error {
		switch {
		case source == nil:
		case *source == "revoke":
			if device != nil {
				l.revoked = append(l.revoked, *device)
			}
		default:
			r.origin, r.batch = *origin, *batch
			l.rows = append(l.rows, r)
			r = commitRow{}
		}
		return nil
	})
	if mark != nil {
		l.mark = *mark
	}
	return l, err
}

// handOn reads the events that somebody here waits for. A conversation that one row brings to somebody is wanted in all
// rows of the same look: the fan-out learns of it only when the events are delivered.
func (s *Store) handOn(ctx context.Context, rows []commitRow) error {
	var read []commitRow
	wanted := map[string]bool{}
	for _, r := range rows {
		if fault.Drop(fault.StoreDrain) || (r.origin == s.cfg.Gateway && s.tail.mine(r)) {
			continue
		}
		read = append(read, r)
		for _, c := range r.convs {
			wanted[c] = wanted[c] || s.cfg.Fanout.Wants(c, r.users)
		}
	}
	var convs []string
	var first, last []int64
	for _, r := range read {
		for i, c := range r.convs {
			if wanted[c] {
				convs, first, last = append(convs, c), append(first, r.first[i]), append(last, r.last[i])
			}
		}
	}
	return s.readOut(ctx, convs, first, last)
}

// readOut reads stretches of events and delivers them, in portions that bound memory.
func (s *Store) readOut(ctx context.Context, convs []string, first, last []int64) error {
	const portion = 256 // events of 64 KiB at most
	var pc []string
	var pf, pl []int64
	room := int64(portion)
	flush := func() error {
		if len(pc) == 0 {
			return nil
		}
		events, err := s.events(ctx, rangesSQL, pc, pf, pl)
		if err != nil {
			return err
		}
		d := make(delivery, len(events))
		for j := range events {
			d[j] = posthorn.Committed{Event: events[j], Prev: events[j].Seq - 1, Epoch: s.epoch.Load()}
		}
		s.cfg.Fanout.Deliver(d)
		pc, pf, pl, room = nil, nil, nil, portion
		return nil
	}
	for i, conv := range convs {
		for from := first[i]; from <= last[i]; {
			to := min(from+room-1, last[i])
			pc, pf, pl = append(pc, conv), append(pf, from), append(pl, to)
			room -= to - from + 1
			from = to + 1
			if room == 0 {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// own notes the backend behind a writer, so that its bells wake nothing here.
func (t *tail) own(w *writer, pid uint32) {
	if w.pid == pid {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pids, w.pid)
	t.pids[pid] = true
	w.pid = pid
}
