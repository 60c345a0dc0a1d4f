package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/api"
	"github.com/posthorn/posthorn/internal/embedpg"
	"github.com/posthorn/posthorn/internal/gateway"
	"github.com/posthorn/posthorn/internal/hub"
	"github.com/posthorn/posthorn/internal/identity"
	"github.com/posthorn/posthorn/internal/store"
	"github.com/posthorn/posthorn/internal/store/directory"
	"github.com/posthorn/posthorn/internal/telemetry"
	"github.com/posthorn/posthorn/wire"
)

// server is one running process: PostgreSQL (where it is private) → store → hub → gateway and api → HTTP, started in this
// order and stopped in the reverse one.
type server struct {
	log       *slog.Logger
	gatewayID string
	pg        *embedpg.Server // nil with --database-url
	store     *store.Store
	hub       *hub.Hub
	gateway   *gateway.Gateway
	jwks      *identity.JWKS // nil without --jwt-jwks
	http      *http.Server
	listener  net.Listener
	draining  atomic.Bool
	failed    chan error // HTTP or PostgreSQL ended by itself; capacity 2
	stopOnce  sync.Once
	stopErr   error
	serving   sync.WaitGroup

	mu        sync.Mutex // guards what follows
	front     *gateway.Gateway
	suspended bool
}

func startServer(ctx context.Context, c *serveCmd, log *slog.Logger) (s *server, err error) {
	s = &server{log: log, gatewayID: uuid.NewString(), failed: make(chan error, 2)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop(5*time.Second))
			s = nil
		}
	}()
	url := c.DatabaseURL
	if url == "" {
		if s.pg, err = c.startPrivate(ctx, c.PgBin, log); err != nil {
			return s, err
		}
		url = s.pg.URL()
	}
	if err = store.Migrate(ctx, url, c.Schema); err != nil {
		return s, err
	}
	limits := c.limits()
	s.store, err = store.New(store.Config{URL: url, Schema: c.Schema, Channel: c.Channel, Poll: c.Doorbell == "poll", Gateway: s.gatewayID,
		Limits: limits, AllowUnsafe: c.Dev, Logger: log, Witness: c.witnessFile(log), Suspend: s.suspend})
	if err != nil {
		return s, err
	}
	s.hub = hub.New(hub.Config{Loader: s.store, Limits: limits, Logger: log,
		Encode: func(ev *posthorn.Event, prev int64) []byte { return wire.AppendEvent(nil, ev, prev) }})
	s.store.SetFanout(s.hub)
	s.hub.Start(context.WithoutCancel(ctx))
	if err = s.store.Start(ctx); err != nil {
		return s, err
	}
	if err = s.startHTTP(ctx, c, limits); err != nil {
		return s, err
	}
	if s.pg != nil {
		s.watchPostgres()
	}
	return s, nil
}

// startHTTP joins identity, gateway and api, and listens.
func (s *server) startHTTP(ctx context.Context, c *serveCmd, limits posthorn.Limits) error {
	dir := directory.New(s.store.Pool(), s.store.Statement)
	auth, err := s.authenticator(c, dir)
	if err != nil {
		return err
	}
	issuer := identity.NewIssuer(tokenStore{dir}, nil)
	calls, err := api.New(api.Config{Log: s.store, Entries: s.store, Directory: told{users{dir}, s.store.Rings}, Keyring: keyring{issuer}, Auth: bearer{auth}, Ready: s,
		Limits: limits, AllowedOrigins: c.Origins, Dev: c.Dev, Version: version(), Logger: s.log})
	if err != nil {
		return err
	}
	if c.Dev {
		if err := demo(ctx, s.store, users{dir}); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	s.gateway = gateway.New(gateway.Config{Log: s.store, Hub: s.hub, Auth: deviceAuth{auth}, Limits: limits, GatewayID: s.gatewayID,
		AllowedOrigins: c.Origins, Compression: c.Compression, Logger: s.log})
	s.gateway.Start()
	s.mu.Lock()
	s.front = s.gateway
	s.front.Suspend(s.suspended)
	s.mu.Unlock()
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/ws", s.gateway)
	mux.Handle("GET /metrics", telemetry.Handler(s.readings))
	mux.Handle("/", calls.Handler())
	// A half-open handshake is cut here; what comes after the upgrade has the gateway's own deadlines.
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: limits.LoginDeadline, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen); err != nil {
		return err
	}
	s.serving.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	})
	return nil
}

// suspend is the store's word to the sockets; it may come before there are any.
func (s *server) suspend(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspended = on
	if s.front != nil {
		s.front.Suspend(on)
	}
}

func (s *server) url() string { return "http://" + s.listener.Addr().String() }

// Conditions is what /readyz shows.
func (s *server) Conditions() []api.Condition {
	all := []api.Condition{{Name: "serving", OK: !s.draining.Load()}}
	if !all[0].OK {
		all[0].Why = "the server is shutting down"
	}
	for _, c := range s.store.Ready() {
		all = append(all, api.Condition(c))
	}
	return all
}

// watchPostgres starts the private database again when it ends by itself: a database that was killed is no reason to lose
// the sockets.
func (s *server) watchPostgres() {
	s.serving.Go(func() {
		for {
			<-s.pg.Done()
			if s.draining.Load() {
				return
			}
			s.log.Error("the private PostgreSQL has ended; starting it again")
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			err := s.pg.Restart(ctx)
			cancel()
			if err != nil && !s.draining.Load() {
				s.failed <- fmt.Errorf("the private PostgreSQL does not start: %w", err)
				return
			}
		}
	})
}

// stop ends everything in order, within the time. It is legal twice, and on a half-started server.
func (s *server) stop(within time.Duration) error {
	s.stopOnce.Do(func() {
		s.draining.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		// Most of the time belongs to replies in flight; the rest is kept for the database.
		talk, done := context.WithTimeout(ctx, within*6/10)
		defer done()
		if s.gateway != nil {
			logged(s.log, "gateway", s.gateway.Stop(talk))
		}
		if s.http != nil {
			// Whoever does not take their answer must not use up the time in which the store commits what is queued.
			short, done := context.WithTimeout(talk, within*2/10)
			if err := s.http.Shutdown(short); err != nil {
				_ = s.http.Close()
			}
			done()
		}
		if s.store != nil {
			commit, done := context.WithTimeout(ctx, within*4/10)
			s.store.Stop(commit)
			done()
		}
		if s.hub != nil {
			logged(s.log, "hub", s.hub.Stop(ctx))
		}
		if s.jwks != nil {
			s.jwks.Close()
		}
		if s.pg != nil {
			err := s.pg.Stop(ctx)
			if errors.Is(err, embedpg.ErrSlow) { // force was needed; nothing is lost, the next start recovers
				logged(s.log, "postgres", err)
				err = nil
			}
			s.stopErr = err
		}
		s.serving.Wait()
	})
	return s.stopErr
}
