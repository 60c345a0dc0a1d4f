package embedpg

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Stop is legal twice, at the same time, with an ended context, and after a crash; what
// was committed is there at the next start, under the same URL.
func TestStop(t *testing.T) {
	t.Parallel()
	dir := copyFolder(t)
	s := start(t, Config{DataDir: dir})
	first := s.URL()
	query(t, s.URL(), "create table kept as select 7 as i")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	errs := make(chan error)
	go func() { errs <- s.Stop(context.Background()) }()
	go func() { errs <- s.Stop(context.Background()) }()
	must(t, errors.Join(<-errs, <-errs))
	must(t, s.Stop(ended))
	select {
	case <-s.Done():
	default:
		t.Error("Done is open after Stop")
	}
	if err := errors.Join(s.Restart(ended), s.Kill(ended), s.Immediate(ended)); !errors.Is(err, ErrStopped) {
		t.Errorf("after Stop: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(s.SocketPath())); !os.IsNotExist(err) {
		t.Errorf("socket folder after Stop: %v", err)
	}

	s = start(t, Config{DataDir: dir})
	if s.URL() != first {
		t.Error("the URL has changed")
	}
	if got := query(t, s.URL(), "select i from kept"); got != "7" {
		t.Errorf("kept: %s", got)
	}
	stop(t, s)

	var log bytes.Buffer
	s = start(t, Config{DataDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, syscall.Kill(s.PID(), syscall.SIGKILL))
	<-s.Done()
	if s.Exit() == nil || !strings.Contains(log.String(), "ended by itself") || !strings.Contains(log.String(), "ready to accept") {
		t.Errorf("a crash: Exit() = %v, log:\n%s", s.Exit(), log.String())
	}
	must(t, s.Stop(context.Background()))

	s = start(t, Config{DataDir: dir})
	if err := s.Stop(ended); err != nil && !errors.Is(err, ErrSlow) {
		t.Errorf("Stop with an ended context: %v", err)
	}
	<-s.Done()
}

// What the fault lab does: stop at once, kill -9, freeze, and start again on the same
// folder with the same URL. Commits that were answered survive each.
func TestRestart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := start(t, Config{DataDir: copyFolder(t)})
	url := s.URL()
	query(t, url, "create table kept (how text)")
	for _, how := range []struct {
		name string
		stop func() error
	}{
		{"running", func() error { return nil }},
		{"immediate", func() error { return s.Immediate(ctx) }},
		{"kill", func() error { return s.Kill(ctx) }},
		{"signal", func() error { defer func() { <-s.Done() }(); return s.Signal(syscall.SIGTERM) }},
	} {
		before := s.PID()
		query(t, url, "insert into kept values ('"+how.name+"')")
		must(t, how.stop())
		must(t, s.Restart(ctx))
		if s.PID() == before || s.URL() != url {
			t.Errorf("%s: pid %d → %d", how.name, before, s.PID())
		}
		if got := query(t, url, "select how from kept where how = '"+how.name+"'"); got != how.name {
			t.Errorf("%s: commit lost, found %s", how.name, got)
		}
	}
	must(t, s.Kill(ctx))
	must(t, s.Kill(ctx)) // legal on a dead one
	if err := s.Signal(syscall.SIGHUP); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Signal to a dead postmaster: %v", err)
	}
}

// A postmaster that does not react (frozen) is ended by force when the context ends.
func TestStopFrozen(t *testing.T) {
	t.Parallel() // it waits long and does nothing
	s := start(t, Config{DataDir: copyFolder(t)})
	must(t, s.Signal(syscall.SIGSTOP))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Stop(ended); !errors.Is(err, ErrSlow) {
		t.Errorf("Stop = %v, want ErrSlow", err)
	}
}
