package embedpg

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrInUse: another live process holds the data folder or the socket folder. Retry
	// after it has stopped.
	ErrInUse = errors.New("in use by another process")

	// ErrForeign: the data folder holds something that embedpg did not make. Never retry:
	// choose another folder.
	ErrForeign = errors.New("not a data folder of Posthorn")

	// ErrSlow: Stop had to use force. Nothing is left running and no commit is lost.
	ErrSlow = errors.New("embedpg: PostgreSQL did not shut down in time and was stopped at once; the next start recovers from the WAL")

	// ErrStopped: Restart, Immediate or Kill after Stop. Call Start.
	ErrStopped = errors.New("embedpg: the server has been stopped")
)

// NotFoundError says that no PostgreSQL of a usable version is installed.
type NotFoundError struct {
	Command string   // the one command that installs it on this platform
	Refused []string // what was found but cannot be used, with the reason
}

func (e *NotFoundError) Error() string {
	s := fmt.Sprintf("no PostgreSQL %d or newer found; install it with: %s", minMajor, e.Command)
	if len(e.Refused) > 0 {
		s += " (not usable: " + strings.Join(e.Refused, "; ") + ")"
	}
	return s
}

// VersionError says that the cluster and the binaries are of different major versions.
type VersionError struct {
	DataDir   string
	DataMajor int
	BinDir    string
	BinMajor  int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s was made by PostgreSQL %d, but the programs in %s are PostgreSQL %d; "+
		"name a folder with PostgreSQL %d in --pg-bin, or move the data with pg_dump or pg_upgrade",
		e.DataDir, e.DataMajor, e.BinDir, e.BinMajor, e.DataMajor)
}

// StepError says which of PostgreSQL's programs failed, with its own last lines.
type StepError struct {
	Step string // "initdb", "bootstrap" or "start"
	Err  error
	Log  string // the last lines that PostgreSQL wrote, oldest first; may be empty
}

func (e *StepError) Error() string {
	s := fmt.Sprintf("embedpg: %s: %v", e.Step, e.Err)
	if e.Log != "" {
		s += "\nPostgreSQL says:\n  " + strings.ReplaceAll(e.Log, "\n", "\n  ")
	}
	return s
}

func (e *StepError) Unwrap() error { return e.Err }
