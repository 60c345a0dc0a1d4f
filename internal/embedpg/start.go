package embedpg

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Start makes the cluster if there is none, and starts PostgreSQL on it. The context
// bounds the start, not the life of the server.
//
// Errors to tell apart: *NotFoundError, *VersionError, ErrInUse, ErrForeign, *StepError.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	began := time.Now()
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	var fresh bool
	if s.secrets, fresh, err = loadSecrets(s.folder); err != nil {
		return nil, errors.Join(err, s.close())
	}
	c, err := s.boot(ctx, fresh)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	cfg.Logger.Info("PostgreSQL is ready", "version", s.bins.version, "pid", c.pid,
		"data", s.folder.root, "user", s.acct.name, "took", time.Since(began).Round(time.Millisecond))
	return s, nil
}

// open finds the programs and takes the folders; nothing is running after an error.
func (s *Server) open(ctx context.Context) error {
	before := folder{s.cfg.DataDir} // may not exist yet; only read here
	var err error
	if s.acct, err = chooseAccount(before.data()); err != nil {
		return err
	}
	major, err := before.major()
	if err != nil {
		return err
	}
	if s.bins, err = find(ctx, s.cfg.BinDir, major, s.acct); err != nil {
		return err
	}
	if err := checkVersion(before.data(), major, s.bins); err != nil {
		return err
	}
	if s.folder, err = claim(s.cfg.DataDir, s.acct); err != nil {
		return err
	}
	if err := s.acct.checkReach(ctx, s.bins, s.folder.root); err != nil {
		return fmt.Errorf("embedpg: data folder: %w", err)
	}
	if s.lock, err = lockFolder(ctx, s.folder); err != nil {
		return err
	}
	s.socket, err = openSocketDir(ctx, s.cfg.SocketDir, s.folder, s.acct)
	return err
}

// boot clears the way and starts a child; fresh: the passwords are not in force yet.
func (s *Server) boot(ctx context.Context, fresh bool) (*child, error) {
	stale, err := clearOrphans(ctx, s.folder, s.acct, s.cfg.StopTimeout, s.cfg.Logger)
	if err != nil {
		return nil, err
	}
	if err := s.ensureCluster(ctx, fresh, stale); err != nil {
		return nil, err
	}
	if err := writeConf(s.folder, s.cfg.Params, s.acct); err != nil {
		return nil, err
	}
	s.socket.clear()
	c, err := s.launch(ctx, stale)
	if err != nil {
		return nil, err
	}
	s.child.Store(c)
	return c, nil
}

// close gives back what open took. The lock goes last (doc.go).
func (s *Server) close() error {
	var err error
	if s.socket != nil {
		err = s.socket.release()
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	if err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	return nil
}
