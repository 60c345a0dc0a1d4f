package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/wire"
)

var built atomic.Bool

// binary is the program as people run it, built once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	built.Store(true)
	dir, err := os.MkdirTemp("", "posthorn-bin-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "posthorn")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return path, nil
})

// process is a server as a process of its own.
type process struct {
	cmd    *exec.Cmd
	url    string
	stderr *lockedBuffer
	exited chan error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// spawn starts `posthorn serve` and waits until it is ready.
func spawn(t *testing.T, args ...string) *process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(t.TempDir(), "ready")
	p := &process{stderr: &lockedBuffer{}, exited: make(chan error, 1)}
	p.cmd = exec.Command(path, append([]string{"serve", "--listen", "127.0.0.1:0", "--ready-file", ready}, args...)...)
	p.cmd.Stderr = p.stderr
	p.cmd.Env = append(os.Environ(), "POSTHORN_ADMIN_KEY="+strings.Repeat("k", 40), "POSTHORN_DATA="+filepath.Dir(ready))
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.cmd.Wait(); close(p.exited) }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("the server's log:\n%s", p.stderr)
		}
	})
	poll(t, "the server to be ready", func() bool {
		b, err := os.ReadFile(ready)
		p.url = strings.TrimSpace(string(b))
		select {
		case err := <-p.exited:
			t.Fatalf("the server ended: %v\n%s", err, p.stderr)
		default:
		}
		return err == nil && p.url != ""
	})
	return p
}

// terminate asks for an orderly end and gives the exit code.
func (p *process) terminate(t *testing.T, within time.Duration) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p.await(t, within)
}

func (p *process) await(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("the server did not end within %s\n%s", within, p.stderr)
		return -1
	}
}

// poll asks until it is so; for states that nothing announces.
func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// openUp lets the database's own user pass through a test's folders.
func openUp(dir string) error {
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func reconnecting(p *process) bool { return strings.Contains(p.stderr.String(), "trying again") }

func draining(p *process) bool { return strings.Contains(p.stderr.String(), "draining") }

// dialProcess logs a device in on a server process.
func dialProcess(t *testing.T, p *process, token, device string) *peer {
	t.Helper()
	c, err := client.Dial(t.Context(), p.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	x := &peer{Conn: c, t: t}
	x.welcome = ask[*wire.Welcome](x, &wire.Hello{Token: token, Device: device})
	return x
}
