// Package store is the hot path's SQL: group commit, the log tail, cursors, pages. PostgreSQL holds the only truth; this
// package keeps nothing that it could not read again, save what it has seen of it (witness.go): by that it notices when the
// truth was put back.
//
// The way of a message: batch.go (the queue) → commit.go (one transaction) → sent, and doorbell → drain.go (the tail) →
// Fanout. Files are named after these steps; the SQL of reads stands in queries.go, that of writes in migrations/*.sql.
//
// Goroutines, all begun by Start and awaited by Stop:
//   - the batcher (batch.go): owns one connection, one transaction in flight;
//   - two lane workers (lane.go): own a connection each, take what must wait for a lock and what changes members;
//   - the deliverer (deliver.go): hands committed batches to the Fanout in order; ends when the batcher and the lanes have;
//   - the tail (drain.go, look.go): reads what became visible, woken by the doorbell and by a poll; it alone compares
//     history (epoch.go), opens the guard (guard.go) and audits (audit.go);
//   - the listener of internal/bell, in doorbell mode notify, and its notifier, which rings after commits;
//   - the lease (lease.go): heartbeats on a connection of its own; suspends and resumes the sockets;
//   - the flushers of hellos (hello.go) and of acks (ackbatch.go), the folder of heads (fold.go), the trimmer (trim.go).
//
// Stop refuses new ops, lets the batcher and the lanes finish what is queued within the caller's context, flushes the
// acks, ends the tail, gives up the lease and closes the connections.
//
// Imports: the root, internal/bell, internal/fault, pgx and tern; gateway and hub are reached through the root's ports.
package store
