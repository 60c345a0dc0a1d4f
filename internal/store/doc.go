// Package store is the hot path's SQL: group commit, the log tail, cursors, pages. PostgreSQL holds the only truth; this
// package keeps nothing that it could not read again.
//
// The way of a message: batch.go (the queue) → commit.go (one transaction) → sent, and doorbell → drain.go (the tail) →
// Fanout. Files are named after these steps; the SQL of reads stands in queries.go, that of writes in migrations/*.sql.
//
// Goroutines, all begun by Start and awaited by Stop:
//   - the batcher (batch.go): owns one connection, one transaction in flight;
//   - two lane workers (lane.go): own a connection each, take what must wait for a lock and what changes members;
//   - the deliverer (deliver.go): hands committed batches to the Fanout in order; ends when the batcher and the lanes have;
//   - the tail (drain.go): reads what became visible, woken by the doorbell and by a poll;
//   - the listener of internal/bell, in doorbell mode notify;
//   - the ack flusher (ackbatch.go) and the folder of heads (fold.go).
//
// Stop refuses new ops, lets the batcher and the lanes finish what is queued within the caller's context, flushes the
// acks, then ends the tail and closes the connections.
//
// Imports: the root, internal/bell, internal/fault, pgx and tern; gateway and hub are reached through the root's ports.
package store
