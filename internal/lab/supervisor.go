package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// supervisor owns the processes of one trial.
type supervisor struct {
	dir  string // their logs
	hist *History

	mu  sync.Mutex // guards what follows
	all []*process
}

// process is one run of a program.
type process struct {
	name string
	log  string // standard error, and standard output where nobody reads it
	cmd  *exec.Cmd
	hist *History
	done chan struct{} // closed by the keeper when the process was reaped and its output was read
	code int           // after done: the exit status; 128 + n for signal n, as a shell says it
}

// program says what to start.
type program struct {
	name   string // of the process in the history
	path   string
	args   []string
	env    []string  // added to a clean environment
	stdout io.Writer // nil: the log
	stdin  *os.File  // nil: none; it is the process's, whether it starts or not
}

// start begins a process; its goroutine, the keeper, stays on one OS thread, since on Linux the death signal comes when the
// thread that started the process ends.
func (s *supervisor) start(prog program) (*process, error) {
	s.mu.Lock()
	path := filepath.Join(s.dir, fmt.Sprintf("%02d-%s.log", len(s.all)+1, fileName(prog.name)))
	s.mu.Unlock()
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(prog.path, prog.args...)
	cmd.Env = append(cleanEnv(os.Environ()), prog.env...)
	cmd.Stdout, cmd.Stderr = prog.stdout, log
	if prog.stdout == nil {
		cmd.Stdout = log
	}
	if prog.stdin != nil {
		cmd.Stdin = prog.stdin
		defer prog.stdin.Close()
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithLab(cmd.SysProcAttr)
	p := &process{name: prog.name, log: path, cmd: cmd, hist: s.hist, done: make(chan struct{})}
	s.hist.Add(Record{Who: p.name, What: Started, Text: strings.Join(faults(prog.env), " ")}) // before anything that it says itself
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer log.Close()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			p.code = exitCode(cmd.Wait(), cmd.ProcessState)
			s.hist.Add(Record{Who: p.name, What: Exited, Text: fmt.Sprint("status ", p.code)})
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, fmt.Errorf("start %s: %w", prog.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, p)
	return p, nil
}

// cleanEnv leaves out what would change how our programs or PostgreSQL's driver behave.
func cleanEnv(env []string) (clean []string) {
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "POSTHORN_") || strings.HasPrefix(name, "IM_") || strings.HasPrefix(name, "PG") || name == "DATA_DIR" {
			continue
		}
		clean = append(clean, kv)
	}
	return clean
}

// faults are the settings worth telling in a history.
func faults(env []string) (out []string) {
	for _, kv := range env {
		if strings.HasPrefix(kv, "POSTHORN_FAULT=") || strings.HasPrefix(kv, "IM_") {
			out = append(out, kv)
		}
	}
	return out
}

func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\: `, r) {
			return '-'
		}
		return r
	}, name)
}

func exitCode(err error, state *os.ProcessState) int {
	if state == nil {
		return -1
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return -1 // its output could not be read to the end
	}
	return state.ExitCode()
}

// wait gives the exit code.
func (p *process) wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return p.code, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%s still runs: %w", p.name, context.Cause(ctx))
	}
}

// kill ends the process as kill -9 does, and waits for it.
func (p *process) kill() int {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // the one error is that it has ended
	<-p.done
	return p.code
}

// alive tells whether the process runs.
func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop ends every process.
func (s *supervisor) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
	}
	for _, p := range s.all {
		<-p.done
	}
}

// tail gives the last lines of a process's log.
func (p *process) tail(n int) string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// poll asks until it is so; between two questions it waits a moment, since a table rings no bell.
func poll(ctx context.Context, ask func() (bool, error)) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := ask()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
