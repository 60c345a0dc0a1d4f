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
