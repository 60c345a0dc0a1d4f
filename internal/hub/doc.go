// Package hub knows who is connected to this process, and brings committed events to them: in order, each event once, to
// those only who may see it, with a bound on everything that waits. It keeps the set of what lags and sweeps it.
//
// The way of an event: deliver → order (by conversation and seq; what comes too early is held, gap) → fanout (every local
// member by their periods, V1) → push. Those who are not ready yet are written to later: a socket between its sub and its
// activate (subscribe, adopt, pending), a member whose view is being read (join, job, load, finish), an event whose reader
// is not known yet (recent). Views, the tail and own batches overtake one another in every way; outdated says which views
// are too old to go on from, and whoever missed something all the same gets a hint.
//
// Nothing is trusted to have worked: audit tells the store how far each conversation has come and which cursors are
// believed to have caught up, and what is delivered again after it heals, gaps that were given up and joins included.
// Of several connections of a device the one with the highest generation lives, whichever registers first (register).
//
// It imports the root and the standard library only, no network and no SQL, so that fake time can run all of it. The
// store calls it as posthorn.Fanout; it reads through posthorn.Loader and writes to posthorn.Socket.
//
// # The lock
//
// One mutex, Hub.mu, guards everything. Nothing is waited for while it is held, and these are called under it: the methods
// of Socket, Config.Encode and Op.Done. They must not block and must not call the hub. Loader is called without it.
//
// # Goroutines
//
// Start begins two: the clock (gaps that were waited for long enough, loads to be tried again) and, unless the sweep is
// off, the sweeper. A load of those who come into a conversation runs in a worker, Config.Loads of them at most, which
// ends when nothing is left to load. All of them end by the context of Start or by Stop, which waits for them.
// Subscribe loads in the goroutine of its caller.
//
// # Shutdown
//
// The gateway lets its sockets go first (CloseAll), then the store stops to deliver, then Stop. What is delivered after
// Stop is pushed to nobody, but every Done is called, now as ever exactly once.
package hub
