package embedpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	backendGrace   = 2 * time.Second // backends whose postmaster died notice it themselves
	immediateGrace = 7 * time.Second // a postmaster kills its children 5 s after SIGQUIT
	killGrace      = 5 * time.Second
)

// clearOrphans ends what an earlier run left on the data folder: a postmaster that has
// outlived its posthorn, backends that have outlived their postmaster. The caller holds
// the lock, so no live posthorn owns them. It signals only processes that it has verified
// to be PostgreSQL on this folder (process.go).
//
// It returns what the next PostgreSQL must be told about postmaster.pid (staleEnv).
func clearOrphans(ctx context.Context, f folder, acct account, stopTimeout time.Duration, log *slog.Logger) ([]string, error) {
	pid, err := readPid(f)
	if err != nil {
		return nil, err
	}
	if err := endAll(ctx, f, acct, pid, stopTimeout, log); err != nil {
		return nil, err
	}
	pid, err = readPid(f) // an orderly end has removed the file
	if err != nil || pid == 0 {
		return nil, err
	}
	return staleEnv(ctx, f, acct, max(pid, -pid), log), nil // negated by a single-user server
}

// staleEnv deals with a postmaster.pid whose pid now belongs to somebody unrelated.
// PostgreSQL would take that process for a live postmaster and refuse to start. Deleting
// the file would be unsafe: its line 7 names the shared memory by which PostgreSQL finds
// out that backends of the old postmaster still run on the data, a check that must also
// hold against those that we failed to see. So the file stays, and PostgreSQL is told, in
// the way pg_ctl uses for its own pid, that this one number is not a postmaster's. Should
// a postmaster come up meanwhile, it writes another number and keeps us out.
func staleEnv(ctx context.Context, f folder, acct account, pid int, log *slog.Logger) []string {
	if !exists(pid) || !unrelated(ctx, pid, f.data(), acct) {
		return nil // PostgreSQL sees for itself that it is gone, or that it had better not start
	}
	log.Info("postmaster.pid names an unrelated process, which is left alone", "pid", pid)
	return []string{"PG_GRANDPARENT_PID=" + strconv.Itoa(pid)}
}

// readPid reads the first line of postmaster.pid: 0 no file, negative a single-user server.
func readPid(f folder) (int, error) {
	content, err := os.ReadFile(f.pidFile())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("embedpg: %w", err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid != 0 {
		return pid, nil
	}
	// Empty: PostgreSQL died (power, full disk) between making and filling the file. It
	// names no shared memory yet, so nothing is lost with it, and PostgreSQL would refuse
	// to start beside it.
	if err := os.Remove(f.pidFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("embedpg: %w", err)
	}
	return 0, nil
}

// endSteps is how an orphan is ended: first gently, at last by force.
func endSteps(stopTimeout time.Duration) []endStep {
	return []endStep{
		// SIGINT means fast shutdown to a postmaster only; to a checkpointer of 18 it
		// would mean a wrong checkpoint.
		{signal: syscall.SIGINT, postmaster: true, wait: stopTimeout},
		{signal: syscall.SIGQUIT, postmaster: true, wait: immediateGrace},
		{wait: backendGrace},
		{signal: syscall.SIGQUIT, wait: immediateGrace},
		{signal: syscall.SIGKILL, wait: killGrace},
	}
}

type endStep struct {
	signal     syscall.Signal // 0: none, only wait
	postmaster bool           // for the postmaster alone; skipped when that is gone
	wait       time.Duration
}

// endAll ends all PostgreSQL processes on the folder; pid is what postmaster.pid says.
func endAll(ctx context.Context, f folder, acct account, pid int, stopTimeout time.Duration, log *slog.Logger) error {
	if pid < 0 { // a bootstrap of ours ends with its input; a person's repair is not ours to end
		if waitNone(ctx, f, acct, stopTimeout) {
			return nil
		}
		return errors.Join(ctx.Err(), fmt.Errorf("embedpg: somebody works on %s with a single-user PostgreSQL (pid %d); wait until they have finished", f.data(), -pid))
	}
	for _, step := range endSteps(stopTimeout) {
		all, err := postgresIn(ctx, f.data(), acct)
		if err != nil || len(all) == 0 {
			release(all)
			return err
		}
		if step.postmaster {
			all = only(all, pid)
		}
		for _, p := range all {
			if step.signal != 0 {
				log.Warn("ending an orphaned PostgreSQL", "pid", p.pid, "signal", step.signal.String())
				err = errors.Join(err, p.signal(step.signal))
			}
		}
		release(all)
		if err != nil {
			return fmt.Errorf("embedpg: end the orphaned PostgreSQL on %s: %w", f.data(), err)
		}
		if len(all) > 0 && waitNone(ctx, f, acct, step.wait) {
			return nil
		}
	}
	return errors.Join(ctx.Err(), fmt.Errorf("embedpg: PostgreSQL processes on %s do not end; end them by hand", f.data()))
}

// waitNone polls until no PostgreSQL runs on the folder: these are not our children, so
// nothing signals their end.
func waitNone(ctx context.Context, f folder, acct account, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for {
		all, err := postgresIn(ctx, f.data(), acct)
		release(all)
		if err == nil && len(all) == 0 {
			return true
		}
		if time.Now().After(deadline) || !pause(ctx) {
			return false
		}
	}
}
