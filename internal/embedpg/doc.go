// Package embedpg runs a private PostgreSQL, 15 or newer, as a child process: the
// database of `posthorn serve` when no --database-url is given, and of the tests, the
// benchmarks and the fault lab.
//
// # The folder
//
// Config.DataDir is a wrapper that we own; PostgreSQL itself owns only data:
//
//	DataDir/               0700, or 0710 root:<PostgreSQL's group> when we are root
//	  data/                the cluster; appears by one rename when it is complete
//	  data.new-*           an initdb under way, or what a crash left of one
//	  lock                 flock: held as long as a Server lives, never removed
//	  password             of the ordinary role posthorn, 0600
//	  superuser-password   of the role postgres, 0600
//	  posthorn.conf        our settings and Config.Params, written at every start
//	  postgres.log(.1)     PostgreSQL's own log, at most two files of 16 MiB
//
// The wrapper exists so that the files which we write as root lie in a folder where
// PostgreSQL's user cannot replace them with symbolic links. The socket lies in a short
// folder of its own outside (socket.go says why).
//
// # Steps
//
// Start: account → find → folder → lock → socket → orphan → secret → initdb (single) →
// conf → launch (child). Then stop. Each file is named after its step.
//
// A copy of one of our clusters (a base backup, say) is brought in by laying it as data
// beside an empty file lock; what root owns in it is given to PostgreSQL's user, and
// passwords that do not come along are made anew.
//
// # Who owns what
//
// A Server owns at most one child at a time. Each child has two goroutines: the keeper
// (child.go) starts the process, waits for it, and is the only one that closes the
// child's done channel; the trimmer (log.go) bounds the log file and ends with done.
// Nothing else outlives a call. Start, Stop, Restart, Immediate and Kill take turns.
//
// # Order of shutdown
//
// Stop: SIGINT (fast shutdown), then SIGQUIT, then SIGKILL → the child is reaped →
// stray backends are ended → socket folder removed → lock released. The lock goes last,
// so that whoever gets it finds nothing of ours running. After kill -9 of our own
// process the kernel releases the lock; the next Start finds the orphan and ends it.
//
// Our child runs in its own process group, so that Ctrl-C reaches us alone and the
// database outlives the drain. A service manager that signals every process must be
// told likewise (systemd: KillMode=mixed).
//
// # Allowed imports
//
// The standard library only: this room starts before anything can speak to a database,
// so its SQL (bootstrap.sql, passwords.sql) goes through `postgres --single`. Its tests
// may use pgx and goleak.
package embedpg
