package embedpg

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// B67: after any crash the next start works without cleaning by hand, and never ends or
// uses a process that is not ours. Each input of the case is a sub-test; that no process
// and no socket folder is left is proved in TestMain.
//
// Sub-tests that write a program and run it do not run beside others: a process forked in
// between would hold the new file open for writing, and it could not be run.
func TestB67_OrphanedPostgres(t *testing.T) {
	t.Run("kill -9, run again at once", testKillAndRunAgain)
	t.Run("kill -9 ends the child", testDieWithParent)
	t.Run("kill -9 during initdb", testKillDuringInitdb)
	t.Run("kill -9 of the postmaster, backends live on", testOrphanedBackends)
	t.Run("postmaster.pid of an unrelated process", testUnrelatedPid)
	t.Run("postmaster.pid empty or garbage", testBrokenPidFile)
	t.Run("10 instances in parallel", testTenFolders)
	t.Run("10 instances on one folder", testOneFolder)
	t.Run("TMPDIR of 120 characters", testLongTmpdir)
	t.Run("as root", testAsRoot)
	t.Run("no locale", testNoLocale)
	t.Run("another major version", testOtherMajor)
	t.Run("disk full during initdb", testDiskFull)
	t.Run("foreign folder", testForeignFolder)
}

// A posthorn is killed with -9; at once another takes its folder, whether the orphan is
// shutting down by itself (DieWithParent) or runs on as if nothing had happened.
func testKillAndRunAgain(t *testing.T) {
	t.Parallel()
	for _, die := range []bool{true, false} {
		cfg := Config{DataDir: copyFolder(t), DieWithParent: die}
		first := run(t, cfg)
		query(t, first.url, "create table kept as select 7 as i")
		first.kill(t)
		if !die && !alive(first.pid) {
			t.Error("DieWithParent=false: PostgreSQL died with its parent")
		}
		second := run(t, cfg)
		if second.pid == first.pid || second.url != first.url {
			t.Errorf("pid %d → %d, or another URL", first.pid, second.pid)
		}
		if alive(first.pid) {
			t.Errorf("orphan %d still runs", first.pid)
		}
		if got := query(t, second.url, "select i from kept"); got != "7" {
			t.Errorf("kept: %s", got)
		}
		second.finish(t)
	}
}

func testDieWithParent(t *testing.T) {
	t.Parallel()
	cfg := Config{DataDir: copyFolder(t), DieWithParent: true}
	h := run(t, cfg)
	h.kill(t)
	if deathSignalWorks {
		eventually(t, "the child ends with its parent", func() bool { return !alive(h.pid) })
	}
	run(t, cfg).finish(t) // also clears the socket folder away
}

// initdb is replaced by one that never ends. The killed run leaves its folder, which does
// not stop the next start; nor does initdb itself live on.
func testKillDuringInitdb(t *testing.T) {
	dir := filepath.Join(tempDir(t), "pg")
	bin, marker := tempDir(t), filepath.Join(tempDir(t), "pid")
	must(t, os.WriteFile(marker, nil, 0o666))
	must(t, os.Chmod(marker, 0o666))
	must(t, os.Symlink(someBinaries(t).program("postgres"), filepath.Join(bin, "postgres")))
	script := "#!/bin/sh\necho $$ > " + marker + "\nexec sleep 600\n"
	must(t, os.WriteFile(filepath.Join(bin, "initdb"), []byte(script), 0o755))

	h := spawn(t, Config{DataDir: dir, BinDir: bin}, nil)
	pid := 0
	eventually(t, "initdb runs", func() bool {
		pid, _ = strconv.Atoi(strings.TrimSpace(read(t, marker)))
		return pid > 0
	})
	h.kill(t)
	if deathSignalWorks {
		eventually(t, "initdb ends with its parent", func() bool { return !alive(pid) })
	}
	if left, _ := filepath.Glob(filepath.Join(dir, newPrefix+"*")); len(left) == 0 {
		t.Error("the killed run left nothing, so this test tests nothing")
	}
	s := start(t, Config{DataDir: dir})
	query(t, s.URL(), "select 1")
	if left, _ := filepath.Glob(filepath.Join(dir, newPrefix+"*")); len(left) > 0 {
		t.Errorf("leftovers: %v", left)
	}
}

// The postmaster dies alone; a busy backend, which does not look for its postmaster, is
// ended before a new postmaster may touch the data.
func testOrphanedBackends(t *testing.T) {
	t.Parallel()
	s := start(t, Config{DataDir: copyFolder(t)})
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Busy without waiting for anything: a backend that waits would notice.
		_ = tryQuery(s.URL(), "select count(*) from generate_series(1, 1000000000000) i where i % 2 = 3")
	}()
	backend := 0
	eventually(t, "the backend works", func() bool {
		backend, _ = strconv.Atoi(query(t, s.SuperURL(), "select coalesce(max(pid), 0) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()"))
		return backend > 0
	})
	must(t, s.Kill(context.Background()))
	if !alive(backend) {
		t.Error("the backend died with its postmaster, so this test tests nothing")
	}
	must(t, s.Restart(context.Background()))
	<-done
	if alive(backend) {
		t.Errorf("backend %d still runs", backend)
	}
	query(t, s.URL(), "select 1")
}

// crashed returns a folder with the postmaster.pid of a killed server, its pid replaced.
func crashed(t *testing.T, pid int) string {
	t.Helper()
	dir := copyFolder(t)
	s := start(t, Config{DataDir: dir})
	must(t, s.Kill(context.Background()))
	stop(t, s)
	_, rest, ok := strings.Cut(read(t, s.folder.pidFile()), "\n")
	if !ok || strings.Count(rest, "\n") < 6 {
		t.Fatalf("postmaster.pid has only: %q", rest)
	}
	must(t, os.WriteFile(s.folder.pidFile(), []byte(strconv.Itoa(pid)+"\n"+rest), 0o600))
	must(t, s.acct.own(s.folder.pidFile()))
	return dir
}

// The pid in postmaster.pid has gone to somebody else: to a program of the same user,
// which PostgreSQL by itself would take for a live postmaster, and to a PostgreSQL that
// runs on another folder. Neither is touched, and the start succeeds.
func testUnrelatedPid(t *testing.T) {
	t.Parallel()
	other := start(t, Config{DataDir: copyFolder(t)})
	sleep := exec.Command("sleep", "600")
	sleep.SysProcAttr = &syscall.SysProcAttr{Credential: other.acct.cred}
	sleep.Dir = "/"
	must(t, sleep.Start())
	defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()

	for name, pid := range map[string]int{"a program": sleep.Process.Pid, "another PostgreSQL": other.PID(), "init": 1} {
		dir := crashed(t, pid)
		before := read(t, folder{dir}.pidFile())
		_, err := clearOrphans(context.Background(), folder{dir}, other.acct, other.cfg.StopTimeout, other.cfg.Logger)
		must(t, err)
		if read(t, folder{dir}.pidFile()) != before {
			t.Errorf("%s: postmaster.pid was changed, PostgreSQL's own interlock is gone", name)
		}
		s := start(t, Config{DataDir: dir})
		if s.PID() == pid || query(t, s.URL(), "select 1") != "1" {
			t.Errorf("%s: uses the foreign process", name)
		}
	}
	ctx := context.Background()
	if unrelated(ctx, other.PID(), other.ClusterDir(), other.acct) && deathSignalWorks {
		t.Error("a live postmaster on the folder counts as unrelated")
	}
	must(t, sleep.Process.Signal(syscall.Signal(0)))
	if query(t, other.URL(), "select 1") != "1" || other.child.Load().gone() {
		t.Error("the other PostgreSQL was ended")
	}
}

// A power loss or a full disk can leave the file empty; PostgreSQL would refuse for ever.
func testBrokenPidFile(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "nonsense\n"} {
		dir := copyFolder(t)
		must(t, os.WriteFile(folder{dir}.pidFile(), []byte(content), 0o600))
		query(t, start(t, Config{DataDir: dir}).URL(), "select 1")
	}
}
