package embedpg

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// command prepares one of PostgreSQL's programs as a helper that must not outlive us.
// Whoever runs it holds the OS thread meanwhile (see runHelper).
func command(ctx context.Context, b binaries, acct account, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.program(name), args...)
	cmd.Env = environment(b)
	// PostgreSQL 15 fails when it cannot read its working directory, and its user often
	// cannot read ours.
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: acct.cred}
	// initdb has children of its own: end the whole group, and do not wait for ever for
	// one that keeps the output pipe open.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// environment is nearly empty: no PGDATA, PGPORT or locale of the caller changes what the
// child does, and none of the caller's secrets are in it.
func environment(b binaries) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	// Relocated builds (the npm packages) bring their libraries along, and some of these
	// find one another only by the search path.
	lib := filepath.Join(filepath.Dir(b.dir), "lib")
	for _, pattern := range []string{"libpq.so*", "libpq*.dylib"} {
		if found, _ := filepath.Glob(filepath.Join(lib, pattern)); len(found) > 0 {
			return append(env, "LD_LIBRARY_PATH="+lib, "DYLD_LIBRARY_PATH="+lib)
		}
	}
	return env
}
