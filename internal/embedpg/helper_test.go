package embedpg

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const helperEnv = "EMBEDPG_TEST_HELPER" // the configuration, as JSON

// helperMain is the test binary as a posthorn of its own: it starts a server, says so,
// and stops it when its standard input ends.
func helperMain() int {
	var cfg Config
	if err := json.Unmarshal([]byte(os.Getenv(helperEnv)), &cfg); err != nil {
		fmt.Println("error", err)
		return 1
	}
	s, err := Start(context.Background(), cfg)
	if err != nil {
		fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		return 1
	}
	fmt.Println("ready", s.PID(), s.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Stop(context.Background()); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// helper is such a process.
type helper struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader

	pid int // of its postmaster
	url string
}

// makeHelper puts a copy of the test binary where every user can run it.
func makeHelper() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return os.WriteFile(helperPath(), content, 0o755)
}

func helperPath() string { return filepath.Join(testRoot, "helper") }

// spawn starts a helper without waiting for its word. env is its whole environment.
func spawn(t testing.TB, cfg Config, cred *syscall.Credential, env ...string) *helper {
	t.Helper()
	text, err := json.Marshal(cfg)
	must(t, err)
	cmd := exec.Command(helperPath())
	cmd.Env = append(env, helperEnv+"="+string(text))
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // when the test failed
	return &helper{cmd: cmd, stdin: stdin, out: bufio.NewReader(stdout)}
}

// word waits for "ready" and returns nil, or for "error" and returns it.
func (h *helper) word(t testing.TB) error {
	t.Helper()
	line, err := h.out.ReadString('\n')
	if err != nil {
		t.Fatalf("helper said nothing: %v", err)
	}
	kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if kind != "ready" {
		return fmt.Errorf("%s", rest)
	}
	pid, url, _ := strings.Cut(rest, " ")
	h.url = url
	h.pid, err = strconv.Atoi(pid)
	must(t, err)
	return nil
}

// run spawns a helper that must become ready.
func run(t testing.TB, cfg Config, env ...string) *helper {
	t.Helper()
	h := spawn(t, cfg, nil, env...)
	must(t, h.word(t))
	return h
}

// kill is kill -9, reaped.
func (h *helper) kill(t testing.TB) {
	t.Helper()
	must(t, h.cmd.Process.Kill())
	_ = h.cmd.Wait()
}

// finish lets the helper stop in order.
func (h *helper) finish(t testing.TB) {
	t.Helper()
	must(t, h.stdin.Close())
	if rest, _ := io.ReadAll(h.out); len(rest) > 0 {
		t.Errorf("helper said at the end: %s", rest)
	}
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("helper: %v", err)
	}
}
