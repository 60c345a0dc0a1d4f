package embedpg

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for out, want := range map[string]struct {
		version string
		major   int
	}{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": {"15.18", 15},
		"postgres (PostgreSQL) 19beta2\n":                        {"19beta2", 19},
		"postgres (PostgreSQL) 9.6.24\n":                         {"9.6.24", 9},
	} {
		version, major, err := parseVersion(out)
		if err != nil || version != want.version || major != want.major {
			t.Errorf("%q: %q %d %v", out, version, major, err)
		}
	}
	if _, _, err := parseVersion("hello"); err == nil {
		t.Error("no version, but no error")
	}
}

// fakePostgres makes a folder whose postgres has a version and whose initdb does nothing.
func fakePostgres(t *testing.T, dir, version string) string {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	for _, name := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

// Versions below 15 are refused, named or found; where nothing is found, the error names
// the one command that installs it.
func TestFindRefuses(t *testing.T) {
	ctx := context.Background()
	old := fakePostgres(t, filepath.Join(tempDir(t), "bin"), "14.9")
	_, err := Start(ctx, Config{DataDir: filepath.Join(tempDir(t), "pg"), BinDir: old})
	if err == nil || !strings.Contains(err.Error(), "is PostgreSQL 14.9, 15 or newer is needed") {
		t.Errorf("old: %v", err)
	}
	empty := tempDir(t)
	_, err = Start(ctx, Config{DataDir: filepath.Join(tempDir(t), "pg"), BinDir: empty})
	if err == nil || !strings.Contains(err.Error(), "--pg-bin "+empty) {
		t.Errorf("empty: %v", err)
	}

	hidePackaged(t, filepath.Join(filepath.Dir(old), "nothing"))
	t.Setenv("PATH", old)
	t.Chdir(empty) // out of the project, which may have a .pg
	_, err = Start(ctx, Config{DataDir: filepath.Join(tempDir(t), "pg")})
	var missing *NotFoundError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "install it with: ") || !strings.Contains(err.Error(), "14.9") {
		t.Errorf("nothing usable: %v", err)
	}
	if missing != nil && len(strings.Fields(missing.Command)) < 3 {
		t.Errorf("command: %q", missing.Command)
	}
}

// PATH first (through symbolic links), then the newest packaged one, then the project's
// own; but programs of the cluster's own version before all others.
func TestFindOrder(t *testing.T) {
	ctx := context.Background()
	acct, err := chooseAccount("")
	must(t, err)
	root := tempDir(t)
	for _, major := range []string{"9", "15", "16", "18"} {
		fakePostgres(t, filepath.Join(root, "lib", major, "bin"), major+".1")
	}
	hidePackaged(t, filepath.Join(root, "lib/*/bin"))
	project := filepath.Join(root, "project")
	fakePostgres(t, filepath.Join(project, ".pg", "17", "bin"), "17.1")
	must(t, os.WriteFile(filepath.Join(project, "go.mod"), nil, 0o644))
	must(t, os.Mkdir(filepath.Join(project, "room"), 0o755))
	t.Chdir(filepath.Join(project, "room"))

	t.Setenv("PATH", "/nonexistent")
	check := func(want int, dir string) {
		t.Helper()
		b, err := find(ctx, "", want, acct)
		if err != nil || b.dir != dir {
			t.Errorf("want %d: found %q, %v; expected %s", want, b.dir, err, dir)
		}
	}
	check(0, filepath.Join(root, "lib/18/bin"))
	check(15, filepath.Join(root, "lib/15/bin"))
	check(17, filepath.Join(project, ".pg/17/bin"))
	check(20, filepath.Join(root, "lib/18/bin")) // not there: checkVersion explains

	onPath := filepath.Join(root, "path")
	must(t, os.Mkdir(onPath, 0o755))
	must(t, os.Symlink(filepath.Join(root, "lib/16/bin/postgres"), filepath.Join(onPath, "postgres")))
	t.Setenv("PATH", onPath)
	check(0, filepath.Join(root, "lib/16/bin"))
	check(15, filepath.Join(root, "lib/15/bin"))

	must(t, os.Chmod(filepath.Join(project, ".pg"), 0o777))
	if slices.Contains(candidates(), filepath.Join(project, ".pg/17/bin")) {
		t.Error("programs that everybody may exchange would be run")
	}
}

// hidePackaged replaces the usual places for one test.
func hidePackaged(t *testing.T, patterns ...string) {
	before := packaged
	packaged = patterns
	t.Cleanup(func() { packaged = before })
}
