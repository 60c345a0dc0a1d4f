package embedpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// launch starts the postmaster and waits until it takes connections.
func (s *Server) launch(ctx context.Context, stale []string) (*child, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout,
		fmt.Errorf("not ready after %s", s.cfg.StartTimeout))
	defer cancel()
	for began := time.Now(); ; {
		c, err := s.launchOnce(ctx, stale)
		var step *StepError
		// A backend that was just killed may not have let go of the shared memory yet.
		// Nothing signals that, so ask PostgreSQL again for a while.
		if errors.As(err, &step) && strings.Contains(step.Log, "pre-existing shared memory block") &&
			time.Since(began) < immediateGrace && pause(ctx) {
			continue
		}
		return c, err
	}
}

func (s *Server) launchOnce(ctx context.Context, stale []string) (*child, error) {
	log, err := openLog(s.folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	info, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("embedpg: %w", err)
	}
	cmd := s.postmaster(log, stale)
	c, err := keep(cmd, s.folder, info.Size(), s.cfg.Logger)
	if err == nil {
		if err = s.awaitReady(ctx, c); err == nil {
			c.wanted.Store(true)
			return c, nil
		}
		// Our patience is over, not the duty to reap.
		clean := context.WithoutCancel(ctx)
		c.end(clean, syscall.SIGQUIT, immediateGrace)
		c.helpers.Wait()
		err = errors.Join(err, endAll(clean, s.folder, s.acct, c.pid, 0, s.cfg.Logger))
	}
	return nil, &StepError{Step: "start", Err: err, Log: logSince(s.folder, info.Size())}
}

// postmaster is the command line of the server. What the URL depends on stands here,
// where no configuration file can override it.
func (s *Server) postmaster(log *os.File, stale []string) *exec.Cmd {
	cmd := exec.Command(s.bins.program("postgres"),
		"-D", s.folder.data(),
		"-c", "unix_socket_directories="+s.socket.path,
		"-c", "port="+port)
	cmd.Dir = "/"
	cmd.Env = append(append(environment(s.bins), stale...), s.cfg.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.acct.cred}
	if s.cfg.DieWithParent {
		setDeathSignal(cmd.SysProcAttr, deathOfServer)
	}
	return cmd
}

// awaitReady polls postmaster.pid, as pg_ctl does: without a driver there is no other
// sign. The pid in it is compared, so that no other server's readiness is taken for ours.
func (s *Server) awaitReady(ctx context.Context, c *child) error {
	for {
		if content, err := os.ReadFile(s.folder.pidFile()); err == nil && readyLine(string(content), c.pid) {
			return nil
		}
		select {
		case <-c.done:
			return fmt.Errorf("postgres ended before it was ready: %w", exitError(c.exit))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// readyLine reads the pid (line 1) and the state (line 8) of a postmaster.pid.
func readyLine(content string, pid int) bool {
	lines := strings.Split(content, "\n")
	if len(lines) < 8 || strings.TrimSpace(lines[0]) != strconv.Itoa(pid) {
		return false
	}
	state := strings.TrimSpace(lines[7])
	return state == "ready" || state == "standby"
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}
