package embedpg

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// Server is a running private PostgreSQL. Its methods may be called at any time and
// concurrently.
type Server struct {
	cfg     Config
	folder  folder
	bins    binaries
	acct    account
	secrets secrets
	lock    *os.File   // flock on the data folder
	socket  *socketDir // with a flock of its own

	child atomic.Pointer[child] // the newest one, living or not; written by the turn's holder

	turn    chan struct{} // holds one token; a channel, so that waiting yields to a context
	stopped bool          // guarded by turn
}

// URL connects to the database posthorn as its owner, the ordinary role posthorn. It is
// the same after every restart of the same folder.
func (s *Server) URL() string { return s.url(roleName, s.secrets.role) }

// SuperURL connects to the database posthorn as the superuser postgres, for what the
// ordinary role must not do: CREATE ROLE, CREATE DATABASE, the lab's measures.
func (s *Server) SuperURL() string { return s.url(superName, s.secrets.super) }

func (s *Server) url(role, password string) string {
	query := url.Values{"host": {s.socket.path}, "port": {port}}.Encode()
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(role, password), Path: "/" + databaseName,
		// To libpq and pgx a plus sign is a plus sign.
		RawQuery: strings.ReplaceAll(query, "+", "%20"),
	}
	return u.String()
}

// Done is closed when the present child has exited, wanted or not. After Restart it is
// another channel.
func (s *Server) Done() <-chan struct{} { return s.child.Load().done }

// Exit says how the present child ended: nil while it runs and after exit code 0.
func (s *Server) Exit() error {
	if c := s.child.Load(); c.gone() {
		return c.exit
	}
	return nil
}

// PID is the postmaster's, also after its end.
func (s *Server) PID() int { return s.child.Load().pid }

// BinDir is the folder of the programs in use.
func (s *Server) BinDir() string { return s.bins.dir }

// DataDir is Config.DataDir, absolute and without symbolic links.
func (s *Server) DataDir() string { return s.folder.root }

// ClusterDir is PostgreSQL's own data directory, inside DataDir.
func (s *Server) ClusterDir() string { return s.folder.data() }

// SocketPath is the Unix socket itself, for a proxy to stand before.
func (s *Server) SocketPath() string { return filepath.Join(s.socket.path, ".s.PGSQL."+port) }

// LogFile is where PostgreSQL's own lines go.
func (s *Server) LogFile() string { return s.folder.log() }

// Version is the programs' version, such as "15.18".
func (s *Server) Version() string { return s.bins.version }
