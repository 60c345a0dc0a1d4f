package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/posthorn/posthorn"
)

// Config of the HTTP calls. Log, Entries, Directory, Keyring, Auth and Ready are required.
type Config struct {
	Log       posthorn.Log
	Entries   Entries
	Directory Directory
	Keyring   Keyring
	Auth      Authenticator
	Ready     Readiness

	// Limits in force; the zero value means posthorn.DefaultLimits.
	Limits posthorn.Limits
	// AllowedOrigins are the pages of other origins that may read answers: scheme, host and, where it is not the scheme's
	// default, port, in lower case, as browsers write them. Default: none.
	AllowedOrigins []string
	// Dev adds POST /dev/token, which signs anybody in who asks on this machine.
	Dev bool
	// Version stands in the OpenAPI document. Default: "dev".
	Version string
	// Logger gets one line per call and the causes of INTERNAL errors. Default: discarded.
	Logger *slog.Logger
}

// Server answers the HTTP calls.
type Server struct {
	cfg      Config
	limits   posthorn.Limits
	log      *slog.Logger
	origins  map[string]bool
	mux      *http.ServeMux
	api      huma.API
	patience time.Duration // of a call: what the store may need for a commit at worst
}

const prefix = "/api/v1"

// New makes a Server.
func New(cfg Config) (*Server, error) {
	if cfg.Log == nil || cfg.Entries == nil || cfg.Directory == nil || cfg.Keyring == nil || cfg.Auth == nil || cfg.Ready == nil {
		return nil, errors.New("api: a port is not connected")
	}
	if cfg.Limits == (posthorn.Limits{}) {
		cfg.Limits = posthorn.DefaultLimits()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	origins, err := checkOrigins(cfg.AllowedOrigins)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, limits: cfg.Limits, log: cfg.Logger, origins: origins, mux: http.NewServeMux(),
		patience: cfg.Limits.LaneDeadline + cfg.Limits.BatchDeadline,
	}
	s.api = humago.NewWithPrefix(s.mux, prefix, s.openAPIConfig())
	s.users()
	s.tokens()
	s.keys()
	s.conversations()
	s.members()
	s.events()
	if cfg.Dev {
		s.dev()
	}
	s.health()
	if err := s.serveOpenAPI(); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return s, nil
}

// Handler answers everything below /api/v1 but the WebSocket, which is mounted beside it, and the health calls. What it
// does not know is a problem document with status 404, so it may stand at the root.
func (s *Server) Handler() http.Handler {
	return s.logged(s.guarded(s.crossOrigin(http.HandlerFunc(s.dispatch))))
}
