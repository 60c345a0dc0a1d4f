package store

// Statements for the test that holds SQL to the schema.
func Statements() []string { return statements }

// ValidSnapshot for its fuzz target.
var ValidSnapshot = validSnapshot

// TailSQL for the test of plans.
const TailSQL = tailSQL

// QueueUsed tells a store how full the notification queue is.
func QueueUsed(s *Store, usage float64) { s.queueUsed(usage) }

// Forget takes the remembered pairs from a store.
func Forget(s *Store) {
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	clear(s.witness.mem.Pairs)
	s.witness.mem.Batches = nil
}

// BeginBatch and EndBatch are a batch of a store that runs elsewhere.
func BeginBatch(s *Store) int64                { return s.tail.begin() }
func EndBatch(s *Store, n int64, unknown bool) { s.tail.end(n, unknown) }

// HeldRows counts the rows of batches in flight that the tail has met.
func HeldRows(s *Store) (n int) {
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	for _, rows := range s.tail.inflight {
		n += len(rows)
	}
	return n
}
