package embedpg

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Names inside the cluster. They are fixed: a data folder must mean the same to every
// version of Posthorn.
const (
	databaseName = "posthorn"
	roleName     = "posthorn" // ordinary: no superuser, no createdb, no createrole
	superName    = "postgres"
	port         = "5432" // only names the socket file: there is no TCP
	minMajor     = 15
)

// Config says which PostgreSQL to run and where it keeps its files.
type Config struct {
	// DataDir is the folder of this PostgreSQL (layout in doc.go), created when missing.
	// An existing one must be empty or ours. Required.
	DataDir string

	// BinDir is the folder with the programs postgres and initdb (--pg-bin). When set,
	// nothing else is tried. Default "": PATH, the usual places of Debian, Red Hat,
	// Alpine, Homebrew and Postgres.app, then .pg of the project (scripts/get-postgres.sh);
	// binaries of the data folder's own major version come first, else the first found.
	BinDir string

	// Logger hears of starts, stops, orphans and crashes. PostgreSQL's own lines go to
	// postgres.log, not here. Default nil: silence.
	Logger *slog.Logger

	// SocketDir is the folder for the Unix socket; at most 90 bytes long. It is created
	// when missing, and used as it is when not. Default "": a private folder below /tmp
	// whose name follows from DataDir, so that the URL stays the same.
	SocketDir string

	// Params are settings for postgresql.conf, which win over ours; ALTER SYSTEM wins
	// over both. data_directory, port and unix_socket_directories are refused.
	// Default nil: PostgreSQL's own values, UTC, durable commits, no TCP.
	Params map[string]string

	// Env is added to the server's environment, which is otherwise nearly empty: the
	// lab's LD_PRELOAD, for example. Default nil.
	Env []string

	// DieWithParent shuts PostgreSQL down (fast) when our process dies, however it dies.
	// Linux only; elsewhere, and with false, the orphan runs on until the next Start on
	// this folder ends it. Default false.
	DieWithParent bool

	// StartTimeout bounds a start after initdb, crash recovery included. 0: 60 s;
	// negative: no bound but the context's.
	StartTimeout time.Duration

	// StopTimeout bounds a fast shutdown, ours or an orphan's; after it the shutdown is
	// immediate and the next start recovers from the WAL. 0: 10 s; negative: no bound
	// but the context's.
	StopTimeout time.Duration
}

var paramName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// withDefaults checks the configuration and fills what was left out.
func (c Config) withDefaults() (Config, error) {
	if c.DataDir == "" {
		return c, errors.New("embedpg: Config.DataDir is empty")
	}
	abs, err := filepath.Abs(c.DataDir)
	if err != nil {
		return c, fmt.Errorf("embedpg: %w", err)
	}
	c.DataDir = abs
	for name, value := range c.Params {
		switch strings.ToLower(name) {
		case "data_directory", "port", "unix_socket_directories":
			return c, fmt.Errorf("embedpg: Params must not set %s: the URL follows from the data folder", name)
		}
		if !paramName.MatchString(name) || strings.ContainsAny(value, "\n\r\x00") {
			return c, fmt.Errorf("embedpg: Params: %q = %q is no setting", name, value)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.StartTimeout = timeout(c.StartTimeout, 60*time.Second)
	c.StopTimeout = timeout(c.StopTimeout, 10*time.Second)
	return c, nil
}

func timeout(d, standard time.Duration) time.Duration {
	switch {
	case d == 0:
		return standard
	case d < 0:
		return 100 * 365 * 24 * time.Hour
	}
	return d
}
