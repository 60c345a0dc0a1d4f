// Package client is the Go SDK: a user's device with a durable log, a durable outbox and one connection that comes back.
//
// Open opens the store, Start connects. What is sent is on disk before it is tried, is tried until the server has
// answered for good, always under the same cmid, and in order within a conversation (D2). What is received is on disk
// before it is confirmed (D3), and counts only as far as there is no hole below it (O1, B07): what lies past a gap is kept
// and waits for a sync from the cursor. A history that was rewound is noticed by its epoch; the device finds the common
// past, cuts its log back to it and offers again what it had sent above (E1). The rules stand in docs/protocol.md.
//
// Underneath lies Conn, a connection that speaks frames and nothing more, for tests and tools.
//
// The way of a burst: conn (read) → burst (gather, one transaction) → ledger (which events count) → store_commit (fsync) →
// ack, sync, answer, feed. The way of a message out: send (check) → outbox, on disk → pump (lanes) → ask (again until
// answered) → answer. A connection's life: connect (token, hello, nonce on disk) → session → list → heal, sync, ack →
// heartbeat → connect.
//
// # Goroutines
//
// Four kinds, each with one owner:
//
//   - Client.run, from Start to the end of its context or Close: dials, and holds one session after the other. Everything in
//     session.go and below it, all timers among them (agenda.go), runs here and needs no locks. It calls the Hooks.
//   - store.write, from Open to Close: the only one that writes the file. It groups what waits into one transaction and
//     then shows new items in the outbox's memory.
//   - Conn.read, from Dial until the connection has ended: reads frames and gives replies to their callers; while the
//     session closes it, a helper that ends with it takes what nobody reads any more.
//   - the application's own: Send and the like wait for store.write; readers take snapshots of the file; History and
//     Members ask on the session's Conn.
//
// # Channels
//
// Conn.frames and Conn.done are closed by Conn.read. Client.stopped is closed by Client.run, Client.ended by the first
// Close, Client.changed by whoever holds Client.mu and replaces it. store.quit is closed by store.close, store.done by
// store.write; store.work is never closed. Pending.done is closed once, by settle. A Feed's channel is closed by its Close
// or by the client's.
//
// # Shutdown
//
// Close ends the session (which confirms what is stored and closes its connection), waits for Client.run, then ends
// store.write and the file, then the handles of what is still in the outbox, with ErrClosed, then the feeds.
//
// # Bounds
//
// 128 frames wait for a session, at most 4 pages among them; a burst takes 256 frames or 1 MiB; 32 items, 4 syncs, 4
// confirms and 8 of the application's requests are under way; the outbox is bounded by Config; what was sent is
// remembered for a day and 10,000 messages; a Feed is bounded by its reader.
//
// # Imports
//
// The root package and wire for the protocol, internal/fault for the lab's points, coder/websocket, bbolt for a store
// with transactions and fsync in one file, google/uuid for cmids that carry their time, and cenkalti/backoff for waits.
package client
