package embedpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Stop shuts PostgreSQL down fast (sessions are ended, everything is written), waits for
// its end and gives the folder back. When StopTimeout or the context ends first, the
// shutdown becomes immediate; Stop still returns only when no process is left, and says
// so with ErrSlow. Legal twice, and after a crash.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	if s.stopped {
		return nil
	}
	s.stopped = true
	began := time.Now()
	if err := errors.Join(s.end(ctx, syscall.SIGINT), s.close()); err != nil {
		return err
	}
	s.cfg.Logger.Info("PostgreSQL has stopped", "data", s.folder.root, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// Immediate stops the postmaster as `pg_ctl -m immediate stop` does (SIGQUIT): nothing is
// written, the next start recovers from the WAL. Folder and URL stay ours for Restart.
func (s *Server) Immediate(ctx context.Context) error { return s.halt(ctx, syscall.SIGQUIT) }

// Kill kills the postmaster with SIGKILL and waits for its end. Its backends find out by
// themselves, a moment later; Restart and Stop wait for them.
func (s *Server) Kill(ctx context.Context) error { return s.halt(ctx, syscall.SIGKILL) }

// Restart starts PostgreSQL again on the same folder, with the same URL; if it still
// runs, it is shut down fast before. After an error nothing runs, and Restart may be
// tried again. ErrStopped after Stop.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	if s.stopped {
		return ErrStopped
	}
	if err := s.end(ctx, syscall.SIGINT); err != nil && !errors.Is(err, ErrSlow) {
		return err
	}
	c, err := s.boot(ctx, false)
	if err != nil {
		return err
	}
	s.cfg.Logger.Info("PostgreSQL has restarted", "pid", c.pid, "data", s.folder.root)
	return nil
}

// Signal signals the postmaster: SIGHUP reloads, SIGSTOP freezes it (not its backends).
// os.ErrProcessDone when it has exited.
func (s *Server) Signal(sig os.Signal) error { return s.child.Load().signal(sig) }

func (s *Server) halt(ctx context.Context, sig syscall.Signal) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	if s.stopped {
		return ErrStopped
	}
	s.child.Load().end(ctx, sig, s.cfg.StopTimeout)
	return nil
}

// end ends the child and then whatever backends it has left.
func (s *Server) end(ctx context.Context, sig syscall.Signal) error {
	c := s.child.Load()
	var err error
	if !c.gone() && !c.end(ctx, sig, s.cfg.StopTimeout) {
		err = ErrSlow
	}
	c.helpers.Wait()
	// Also when the context has ended: what we started must not stay behind.
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(err, endAll(rest, s.folder, s.acct, c.pid, s.cfg.StopTimeout, s.cfg.Logger))
}

// end signals the child and returns when it has been reaped, using more force as patience
// runs out; false: more than the first signal was needed.
func (c *child) end(ctx context.Context, first syscall.Signal, patience time.Duration) bool {
	force := []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{first, patience}, {syscall.SIGQUIT, immediateGrace}, {syscall.SIGKILL, time.Hour}}
	c.wanted.Store(false)
	for i, f := range force {
		_ = c.signal(f.signal) // the one error is that it has ended
		timer := time.NewTimer(f.wait)
		cancelled := ctx.Done()
		if i > 0 {
			cancelled = nil // the context ends the first patience only
		}
		select {
		case <-c.done:
			timer.Stop()
			return i == 0
		case <-timer.C:
		case <-cancelled:
		}
		timer.Stop()
	}
	<-c.done
	return false
}

// take waits for the turn; a free turn is taken even when the context has ended, because
// Stop must work then too.
func (s *Server) take(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	default:
	}
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("embedpg: another start or stop is under way: %w", ctx.Err())
	}
}

func (s *Server) give() { s.turn <- struct{}{} }
