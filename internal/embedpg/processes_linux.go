package embedpg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// postgresIn lists the live PostgreSQL processes on a data folder, postmaster included.
func postgresIn(ctx context.Context, dataDir string, acct account) ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("embedpg: cannot tell whether an older PostgreSQL still runs: %w", err)
	}
	var found []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process of another user cannot work on a data folder of mode 0700.
		if uid, err := ownerOf(filepath.Join("/proc", e.Name())); err != nil || uid != acct.uid {
			continue
		}
		handle, err := os.FindProcess(pid) // a pidfd: first hold it, then look
		if err != nil {
			continue
		}
		if isPostgres(ctx, pid, dataDir, acct) {
			found = append(found, process{pid, handle})
		} else {
			_ = handle.Release()
		}
	}
	return found, ctx.Err()
}

// isPostgres looks at program and working directory. A process that has gone, or is a
// zombie, has neither.
func isPostgres(ctx context.Context, pid int, dataDir string, acct account) bool {
	return isServer(procLink(ctx, pid, "exe", acct)) && procLink(ctx, pid, "cwd", acct) == dataDir
}

func isServer(program string) bool {
	// The package may have been upgraded under the running program.
	return filepath.Base(strings.TrimSuffix(program, " (deleted)")) == "postgres"
}

// unrelated reports whether the process is certainly no postmaster on the data folder.
// Where that cannot be seen the answer is no, and PostgreSQL makes up its own mind.
func unrelated(ctx context.Context, pid int, dataDir string, acct account) bool {
	proc := fmt.Sprintf("/proc/%d", pid)
	uid, err := ownerOf(proc)
	if err != nil {
		return false
	}
	if uid != acct.uid {
		return true
	}
	stat, err := os.ReadFile(proc + "/stat") // "12 (postgres) S …"
	if err != nil {
		return false
	}
	if _, state, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(state, "Z") {
		return true // a zombie, which its parent has not reaped: it holds nothing any more
	}
	exe, cwd := procLink(ctx, pid, "exe", acct), procLink(ctx, pid, "cwd", acct)
	return exe != "" && !isServer(exe) || cwd != "" && cwd != dataDir
}

// procLink reads a link of /proc/<pid>, "" when it cannot. Root in a container often
// lacks the capability (SYS_PTRACE) to read those of other users; then the process's own
// user is asked, who may.
func procLink(ctx context.Context, pid int, name string, acct account) string {
	path := fmt.Sprintf("/proc/%d/%s", pid, name)
	target, err := os.Readlink(path)
	if err == nil || acct.cred == nil || !os.IsPermission(err) {
		return target
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `exec readlink "$1"`, "sh", path)
	cmd.Env = []string{"PATH=/usr/bin:/bin"} // ours may be empty
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: acct.cred}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(out), "\n")
}
