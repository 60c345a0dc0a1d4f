package embedpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// testRoot holds all folders of this run; PostgreSQL's user can walk through it, which
// it could not with t.TempDir when the tests run as root.
var testRoot string

// TestMain ends with the proof that nothing is left: no goroutine, no PostgreSQL on any
// of our folders, no socket folder.
func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		os.Exit(helperMain())
	}
	syscall.Umask(0o022) // PostgreSQL's user must reach what the tests lay out
	var err error
	if testRoot, err = os.MkdirTemp("", "embedpg-test-"); err == nil {
		err = os.Chmod(testRoot, 0o711)
	}
	if err == nil {
		testRoot, err = filepath.EvalSymlinks(testRoot)
	}
	if err == nil {
		err = makeHelper()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, err := range []error{goleak.Find(), leftProcesses(), leftSockets()} {
		if err != nil {
			fmt.Fprintln(os.Stderr, "left behind:", err)
			code = 1
		}
	}
	if err := os.RemoveAll(testRoot); err != nil {
		fmt.Fprintln(os.Stderr, "left behind:", err)
		code = 1
	}
	os.Exit(code)
}

// leftProcesses looks for any process that works below testRoot.
func leftProcesses() error {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if dir, err := os.Readlink(link); err == nil && strings.HasPrefix(dir, testRoot) {
			return fmt.Errorf("process %s on %s", filepath.Base(filepath.Dir(link)), dir)
		}
	}
	return nil
}

var socketDirs sync.Map // path → true: every automatic one that a test has seen

func leftSockets() (err error) {
	socketDirs.Range(func(path, _ any) bool {
		if _, statErr := os.Lstat(path.(string)); statErr == nil {
			err = fmt.Errorf("socket folder %s", path)
		}
		return err == nil
	})
	return err
}

// tempDir makes a folder that PostgreSQL's user can reach.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(testRoot, "t-")
	must(t, err)
	must(t, os.Chmod(dir, 0o711))
	return dir
}

// template is one complete data folder, made once; most tests start on a copy of it.
var template = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(testRoot, "template")
	s, err := Start(context.Background(), Config{DataDir: dir})
	if err != nil {
		return "", err
	}
	return dir, s.Stop(context.Background())
})

func copyFolder(t testing.TB) string {
	t.Helper()
	from, err := template()
	must(t, err)
	to := filepath.Join(tempDir(t), "pg")
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	return to
}

// start starts a server which the test need not stop.
func start(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := Start(context.Background(), cfg)
	must(t, err)
	socketDirs.Store(filepath.Dir(s.SocketPath()), true)
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t testing.TB, s *Server) {
	t.Helper()
	must(t, s.Stop(context.Background()))
}

// query runs one statement on its own connection and returns the first value as text.
func query(t testing.TB, url, sql string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	must(t, err)
	defer func() { must(t, conn.Close(ctx)) }()
	var value any
	if err := conn.QueryRow(ctx, sql).Scan(&value); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("%s: %v", sql, err)
	}
	return fmt.Sprint(value)
}

// eventually polls what nothing signals.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !ok(); {
		time.Sleep(5 * time.Millisecond) // sleep: the beat of a poll
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isRoot() bool { return os.Geteuid() == 0 }
