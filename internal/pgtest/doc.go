// Package pgtest gives each test a real, migrated PostgreSQL database of its own. One private cluster serves a whole run:
// `make test` starts it (withpg) and names it in the environment; a single `go test` starts its own and stops it at the end.
//
// Main owns the cluster that it starts; it has no goroutine beyond those of embedpg and waits for their end. Databases are
// copied from a migrated template and dropped when their test ends.
//
// Only tests and withpg may import it.
package pgtest
