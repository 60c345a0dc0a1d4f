package store

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthorn/posthorn"
)

// counters are read by Stats.
type counters struct {
	sent, batches, unknown, acks, tailErrors, repaired, lastWarn, lastRefused atomic.Int64
	queueUsage                                                                atomic.Uint64 // bits of a float
	audited, corrected, renewals, refused, suspensions                        atomic.Int64

	mu      sync.Mutex
	touched map[string]bool // conversations whose next_seq lies behind; guarded by mu
}

// Stats of a store since its start.
type Stats struct {
	Sent, Batches, Unknown, Acks, TailErrors, Repaired, Reconnects int64
	Audited, Corrected, Renewals, Refused, Suspensions             int64 // see audit.go, epoch.go, lease.go
	Queued                                                         int
	Junk                                                           int64   // notifications that were no bell
	QueueUsage                                                     float64 // of PostgreSQL's notification queue, 0 to 1
}

// Stats reads the counters.
func (s *Store) Stats() Stats {
	s.queue.mu.Lock()
	queued := s.queue.count
	s.queue.mu.Unlock()
	st := Stats{Sent: s.stats.sent.Load(), Batches: s.stats.batches.Load(), Unknown: s.stats.unknown.Load(), Acks: s.stats.acks.Load(),
		TailErrors: s.stats.tailErrors.Load(), Repaired: s.stats.repaired.Load(), Queued: queued,
		Audited: s.stats.audited.Load(), Corrected: s.stats.corrected.Load(), Renewals: s.stats.renewals.Load(),
		Refused: s.stats.refused.Load(), Suspensions: s.stats.suspensions.Load()}
	st.QueueUsage = math.Float64frombits(s.stats.queueUsage.Load())
	if s.bell != nil {
		st.Reconnects, st.Junk = s.bell.Reconnects(), s.bell.Junk()
	}
	return st
}

// maxTouched bounds the memory of the fold; what is left out stays behind until its next message, which harms nobody:
// the head is defined by the newest event.
const maxTouched = 100_000

// oldTransaction is the age from which a transaction counts as holding back pruning.
const oldTransaction = 2 * time.Second

func (s *Store) touched(events []posthorn.Committed) {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	if s.stats.touched == nil {
		s.stats.touched = map[string]bool{}
	}
	for i := range events {
		if len(s.stats.touched) < maxTouched {
			s.stats.touched[events[i].Event.Conv] = true
		}
	}
}

// runFold lets next_seq and last_at follow the log, and holds back while an old transaction would keep each new version of
// these rows alive.
func (s *Store) runFold() {
	for s.pause(s.cfg.Limits.FoldInterval) {
		ctx, cancel := context.WithTimeout(s.hard, 10*time.Second)
		var age float64
		err := s.pool.QueryRow(ctx, s.sql(oldestTxSQL)).Scan(&age)
		s.held.Store(err == nil && age > oldTransaction.Seconds())
		if err == nil && !s.held.Load() {
			err = s.fold(ctx)
		}
		cancel()
		if err != nil {
			s.warnTail(err)
		}
	}
}

func (s *Store) fold(ctx context.Context) error {
	s.stats.mu.Lock()
	convs := make([]string, 0, len(s.stats.touched))
	for c := range s.stats.touched {
		convs = append(convs, c)
	}
	s.stats.touched = nil
	s.stats.mu.Unlock()
	const portion = 500
	for len(convs) > 0 {
		n := min(portion, len(convs))
		if _, err := s.pool.Exec(ctx, s.sql(foldSQL), convs[:n]); err != nil {
			return err
		}
		convs = convs[n:]
	}
	return nil
}
