// Package bell listens for the doorbell: a NOTIFY that says "look again" and nothing more. No content is trusted and no
// completeness rests on it; whoever is woken reads the log, and reads it by itself now and then.
//
// A Listener owns one goroutine and one connection that does nothing else, because a listener that is busy lets the
// server's notification queue fill until every notifying COMMIT fails. It proves now and then, over another connection,
// that it hears; each proof has a goroutine that ends with its deadline. A Notifier owns one goroutine and one connection
// and rings after commits. Start begins each, Stop ends it and waits.
//
// It imports the standard library and pgx, so that every library on PostgreSQL can share it.
package bell
