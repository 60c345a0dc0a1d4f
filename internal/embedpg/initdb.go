package embedpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ensureCluster makes the cluster when there is none, and puts fresh passwords in force.
func (s *Server) ensureCluster(ctx context.Context, fresh bool, stale []string) error {
	f := s.folder
	if err := f.sweep(); err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	major, err := f.major()
	if err != nil {
		return err
	}
	if major == 0 {
		return createCluster(ctx, f, s.bins, s.acct, s.secrets)
	}
	if err := giveTree(f.data(), s.acct); err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	if !fresh {
		return nil
	}
	// First in force, then stored: after a crash in between the files are still missing,
	// and the next start does it again.
	if err := single(ctx, s.bins, s.acct, f.data(), passwordsSQL, s.secrets, stale...); err != nil {
		return err
	}
	return s.secrets.store(f)
}

// createCluster makes a complete cluster, roles and database included, in a folder of
// another name, and renames it last: whatever interrupts it (a crash, a full disk), data
// is missing or complete, and what is left is swept at the next start.
func createCluster(ctx context.Context, f folder, b binaries, acct account, sec secrets) error {
	// An empty folder may stand in the way; one with content is not ours to replace.
	if err := os.Remove(f.data()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("embedpg: %s is %w: there is no PG_VERSION in it, and it cannot be replaced: %w", f.data(), ErrForeign, err)
	}
	tmp, err := os.MkdirTemp(f.root, newPrefix)
	if err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // after the rename there is none
	if err := acct.own(tmp); err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	if err := initdb(ctx, f, b, acct, tmp, sec); err != nil {
		return err
	}
	if err := includeConf(tmp); err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	if err := single(ctx, b, acct, tmp, bootstrapSQL, sec); err != nil {
		return err
	}
	if err := sec.store(f); err != nil {
		return err
	}
	if err := os.Rename(tmp, f.data()); err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	return syncDir(f.root)
}

// initdb runs PostgreSQL's program of that name on an empty folder.
//
// Strings are ordered by their bytes everywhere (locale C): an upgrade of the system's
// locales must not change an order that indexes are built on. Letters are still those of
// Unicode (upper, lower, full text) where the system has C.UTF-8; Darwin may not, and
// then only ASCII has case. From 17 on PostgreSQL brings a C.UTF-8 of its own.
func initdb(ctx context.Context, f folder, b binaries, acct account, dir string, sec secrets) error {
	pwfile, err := os.CreateTemp(f.root, newPrefix+"pw-*") // 0600
	if err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	defer func() { _ = os.Remove(pwfile.Name()) }()
	_, err = pwfile.WriteString(sec.super + "\n")
	if err := errors.Join(err, pwfile.Close(), acct.own(pwfile.Name())); err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	args := []string{
		"-D", dir, "-U", superName, "--pwfile=" + pwfile.Name(),
		"--auth=scram-sha-256", "--encoding=UTF8", "--data-checksums", "--locale=C",
	}
	if b.major >= 17 {
		args = append(args, "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
	}
	out, err := runInitdb(ctx, b, acct, append(args, "--lc-ctype=C.UTF-8"))
	if err != nil && strings.Contains(out, "invalid locale name") {
		out, err = runInitdb(ctx, b, acct, append(args, "--lc-ctype=C"))
	}
	if err != nil {
		return &StepError{Step: "initdb", Err: err, Log: lastLines(out)}
	}
	return nil
}

func runInitdb(ctx context.Context, b binaries, acct account, args []string) (string, error) {
	var out strings.Builder
	cmd := command(ctx, b, acct, "initdb", args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := runHelper(cmd)
	return out.String(), err
}

// giveTree gives a cluster that root has put here (a restored backup, say) to the account.
func giveTree(dir string, acct account) error {
	uid, err := ownerOf(dir)
	if err != nil || acct.cred == nil || uid == acct.uid {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return acct.own(path)
	})
}
