package embedpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The inputs of B67 that are about where PostgreSQL runs.

// A Unix socket's path has at most 107 bytes; TMPDIR may be longer, and the data folder too.
func testLongTmpdir(t *testing.T) {
	t.Parallel()
	tmp := tempDir(t)
	tmp = filepath.Join(tmp, strings.Repeat("x", max(1, 120-len(tmp)-1)))
	must(t, os.Mkdir(tmp, 0o711))
	must(t, os.Chmod(tmp, 0o711))
	h := run(t, Config{DataDir: filepath.Join(tmp, "pg")}, "TMPDIR="+tmp)
	if len(tmp) < 120 {
		t.Errorf("TMPDIR has only %d characters", len(tmp))
	}
	query(t, h.url, "select 1")
	h.finish(t)

	_, err := Start(context.Background(), Config{DataDir: copyFolder(t), SocketDir: tmp})
	if err == nil || !strings.Contains(err.Error(), "a Unix socket allows") {
		t.Errorf("SocketDir of %d characters: %v", len(tmp), err)
	}
}

// Root drops to an ordinary user, and says what is missing when that user cannot get in;
// everybody else runs PostgreSQL as themselves.
func testAsRoot(t *testing.T) {
	t.Parallel()
	if !isRoot() {
		t.Skip("NOT_RUN: these tests do not run as root; as an ordinary user all others are this test")
	}
	s := start(t, Config{DataDir: copyFolder(t)})
	info, err := os.Stat(fmt.Sprintf("/proc/%d", s.PID()))
	must(t, err)
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 || int(uid) != s.acct.uid {
		t.Errorf("PostgreSQL runs as uid %d", uid)
	}
	groups := read(t, fmt.Sprintf("/proc/%d/status", s.PID()))
	if !strings.Contains(groups, fmt.Sprintf("\nGroups:\t%d \n", s.acct.gid)) {
		t.Errorf("supplementary groups of root were kept:\n%s", groups)
	}

	// A cluster that root has put there, a restored copy say, is given to that user.
	dir := copyFolder(t)
	copied := filepath.Join(tempDir(t), "pg")
	must(t, os.MkdirAll(copied, 0o700))
	must(t, os.WriteFile(filepath.Join(copied, "lock"), nil, 0o600))
	must(t, exec.Command("cp", "-r", "--preserve=mode", folder{dir}.data(), folder{copied}.data()).Run())
	query(t, start(t, Config{DataDir: copied}).URL(), "select 1")

	closed := filepath.Join(tempDir(t), "closed")
	must(t, os.Mkdir(closed, 0o700))
	_, err = Start(context.Background(), Config{DataDir: filepath.Join(closed, "deep", "pg")})
	if err == nil || !strings.Contains(err.Error(), "may not enter "+closed+" on the way") || !strings.Contains(err.Error(), "chmod o+x "+closed) {
		t.Errorf("unreachable folder: %v", err)
	}

	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	home := tempDir(t)
	must(t, os.Chown(home, 65534, 65534))
	h := spawn(t, Config{DataDir: filepath.Join(home, "pg")}, nobody)
	must(t, h.word(t))
	query(t, h.url, "select 1")
	h.finish(t)
	// Root on somebody else's folder runs PostgreSQL as them and takes nothing from them.
	s = start(t, Config{DataDir: filepath.Join(home, "pg")})
	if uid, _ := ownerOf(s.ClusterDir()); uid != 65534 || s.acct.uid != 65534 {
		t.Errorf("root took the folder: owner %d, account %d", uid, s.acct.uid)
	}
	stop(t, s)
	h = spawn(t, Config{DataDir: filepath.Join(home, "pg")}, nobody)
	must(t, h.word(t))
	h.finish(t)
}

func testNoLocale(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{nil, {"LC_ALL=xx_YY.bogus", "LANG=xx_YY.bogus", "PGPORT=1", "PGDATA=/nonexistent"}} {
		h := run(t, Config{DataDir: filepath.Join(tempDir(t), "pg")}, env...)
		if got := query(t, h.url, "select 'ä' || current_setting('server_encoding')"); got != "äUTF8" {
			t.Errorf("%v: %q", env, got)
		}
		h.finish(t)
	}
}

func testOtherMajor(t *testing.T) {
	t.Parallel()
	dir := copyFolder(t)
	must(t, os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("14\n"), 0o600))
	_, err := Start(context.Background(), Config{DataDir: dir})
	var version *VersionError
	if !errors.As(err, &version) || version.DataMajor != 14 || version.BinMajor < 15 ||
		!strings.Contains(err.Error(), "made by PostgreSQL 14") || !strings.Contains(err.Error(), fmt.Sprintf("are PostgreSQL %d", version.BinMajor)) {
		t.Errorf("error: %v", err)
	}
}

// Every version that scripts/get-postgres.sh has fetched starts; a folder made by one is
// refused by another, and finds its own version by itself.
func TestVersions(t *testing.T) {
	dirs, _ := filepath.Glob("../../.pg/*/bin")
	if len(dirs) == 0 {
		t.Skip("NOT_RUN: scripts/get-postgres.sh has fetched no further version")
	}
	usual := someBinaries(t)
	for _, bin := range dirs {
		t.Run(filepath.Base(filepath.Dir(bin)), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(tempDir(t), "pg")
			s := start(t, Config{DataDir: dir, BinDir: bin})
			if got := query(t, s.URL(), "select lower('Ä') || current_setting('server_version')"); got != "ä"+s.Version() {
				t.Errorf("got %q, version %q", got, s.Version())
			}
			must(t, s.Kill(context.Background()))
			must(t, s.Restart(context.Background()))
			stop(t, s)
			if s.bins.major == usual.major {
				return
			}
			var version *VersionError
			if _, err := Start(context.Background(), Config{DataDir: dir, BinDir: usual.dir}); !errors.As(err, &version) {
				t.Errorf("other binaries: %v", err)
			}
			again := start(t, Config{DataDir: dir})
			if again.bins.major != s.bins.major {
				t.Errorf("chose %s for a cluster of %d", again.BinDir(), s.bins.major)
			}
		})
	}
}

// A full disk fails with PostgreSQL's own words and leaves nothing that stops the next start.
func testDiskFull(t *testing.T) {
	dir := filepath.Join(tempDir(t), "disk")
	must(t, os.Mkdir(dir, 0o755))
	cfg := Config{DataDir: filepath.Join(dir, "pg")}
	var cure func()
	want := "No space left on device"
	if mount(dir, "size=12m") == nil {
		defer func() { must(t, syscall.Unmount(dir, 0)) }()
		must(t, os.Chmod(dir, 0o755))
		cure = func() { must(t, mount(dir, "remount,size=300m")) }
	} else { // no root, no mount: a limit on the size of files
		want = "File too large"
		cfg.BinDir = tempDir(t)
		real := someBinaries(t)
		must(t, os.Symlink(real.program("postgres"), filepath.Join(cfg.BinDir, "postgres")))
		script := "#!/bin/sh\nulimit -f 2048\nexec " + real.program("initdb") + ` "$@"` + "\n"
		must(t, os.WriteFile(filepath.Join(cfg.BinDir, "initdb"), []byte(script), 0o755))
		cure = func() { cfg.BinDir = "" }
	}
	_, err := Start(context.Background(), cfg)
	var step *StepError
	if !errors.As(err, &step) || !strings.Contains(step.Log, want) && !strings.Contains(step.Log, "File size limit exceeded") {
		t.Errorf("error: %v", err)
	}
	entries, err := os.ReadDir(cfg.DataDir)
	must(t, err)
	for _, e := range entries {
		if e.Name() != "lock" {
			t.Errorf("left behind: %s", e.Name())
		}
	}
	cure()
	s := start(t, cfg)
	query(t, s.URL(), "select 1")
	stop(t, s) // before the file system is unmounted
}

func mount(dir, options string) error {
	return exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).Run()
}

// What is not ours is never overwritten.
func testForeignFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"letter.txt", "PG_VERSION", "data/letter.txt", "lock+data/letter.txt"} {
		dir := tempDir(t)
		file := filepath.Join(dir, strings.TrimPrefix(name, "lock+"))
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(file, []byte("15\n"), 0o600))
		if strings.HasPrefix(name, "lock+") {
			must(t, os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600))
		}
		if _, err := Start(context.Background(), Config{DataDir: dir}); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", name, err)
		}
		if read(t, file) != "15\n" {
			t.Errorf("%s was changed", name)
		}
	}
}

// someBinaries is what Start finds by itself.
func someBinaries(t testing.TB) binaries {
	t.Helper()
	acct, err := chooseAccount("")
	must(t, err)
	b, err := find(context.Background(), "", 0, acct)
	must(t, err)
	return b
}

// tryQuery is query for a connection that is about to break.
func tryQuery(url, sql string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}
