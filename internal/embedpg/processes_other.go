//go:build unix && !linux

package embedpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// postgresIn lists the live PostgreSQL processes on a data folder, postmaster included.
// There is no /proc; lsof, which Darwin brings along, knows working directories.
func postgresIn(ctx context.Context, dataDir string, acct account) ([]process, error) {
	// -a: all conditions; program named postgres…, of this user, its working directory.
	cmd := exec.CommandContext(ctx, "lsof", "-a", "-w", "-c", "postgres", "-u", strconv.Itoa(acct.uid), "-d", "cwd", "-Fpn")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) { // code 1: none found
		return nil, fmt.Errorf("embedpg: cannot tell whether an older PostgreSQL still runs: %w", err)
	}
	var found []process
	for _, pid := range parseLsof(string(out), dataDir) {
		handle, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		found = append(found, process{pid, handle})
	}
	return found, ctx.Err()
}

// unrelated reports whether the process is certainly no postmaster on the data folder.
// The caller has asked postgresIn before, and lsof sees all processes of one's own user;
// those of others PostgreSQL ignores by itself.
func unrelated(context.Context, int, string, account) bool { return true }
