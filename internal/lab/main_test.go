package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// testRoot holds everything that these tests write. PostgreSQL's own user can walk through it.
var testRoot string

func TestMain(m *testing.M) {
	var err error
	if testRoot, err = tempDir("posthorn-lab-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(testRoot); err != nil {
		fmt.Fprintln(os.Stderr, "left behind:", err)
		code = max(code, 1)
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// sources is the root of the repository.
var sources = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above the tests")
		}
	}
})

// built is the program, built from the sources as they are now.
var built = sync.OnceValues(func() (string, error) {
	root, err := sources()
	if err != nil {
		return "", err
	}
	path := filepath.Join(testRoot, "posthorn")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/posthorn")
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, text)
	}
	return path, nil
})

func theProgram(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func root(t testing.TB) string {
	t.Helper()
	dir, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// folder is like t.TempDir, but PostgreSQL's own user can walk through it.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(testRoot, "t-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// labRun carries out `posthorn lab run` with temporary files in tmp and evidence below it.
func labRun(t testing.TB, bin, tmp string, args ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := labCommand(ctx, bin, tmp, args...)
	b, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

func labCommand(ctx context.Context, bin, tmp string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bin, append([]string{"lab", "run", "--evidence", filepath.Join(tmp, "evidence")}, args...)...)
	cmd.Env = append(cleanEnv(os.Environ()), "TMPDIR="+filepath.Join(tmp, "tmp"), "POSTHORN_PG_BIN="+os.Getenv("POSTHORN_PG_BIN"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// workFolder is a folder for labRun.
func workFolder(t testing.TB) string {
	t.Helper()
	dir := folder(t)
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mustBeEmpty: a lab that has ended leaves no file in its temporary folder, and no process that came from its program.
func mustBeEmpty(t testing.TB, bin, tmp string) {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(tmp, "tmp"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("left behind: %s", e.Name())
	}
	links, _ := filepath.Glob("/proc/[0-9]*/exe") // none where there is no /proc
	for _, link := range links {
		if exe, err := os.Readlink(link); err == nil && exe == bin {
			t.Errorf("left behind: process %s of %s", filepath.Base(filepath.Dir(link)), bin)
		}
	}
	links, _ = filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if dir, err := os.Readlink(link); err == nil && within(dir, tmp) {
			t.Errorf("left behind: process %s in %s", filepath.Base(filepath.Dir(link)), dir)
		}
	}
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
