package embedpg

import (
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// child is one run of the postmaster.
type child struct {
	pid  int
	proc *os.Process
	done chan struct{} // closed by the keeper when the process has been reaped
	exit error         // how it ended; read it after done

	wanted  atomic.Bool    // from readiness until we end it: an end in between is a crash
	helpers sync.WaitGroup // the goroutines; all end with done
}

// keep starts the process and reaps it, in a goroutine that stays on its OS thread all
// the while: on Linux the death signal fires when the *thread* that started the process
// ends, which for a thread of the Go scheduler can be long before the process does.
func keep(cmd *exec.Cmd, f folder, logPos int64, log *slog.Logger) (*child, error) {
	c := &child{done: make(chan struct{})}
	started := make(chan error, 1)
	c.helpers.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.done)
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		c.pid, c.proc = cmd.Process.Pid, cmd.Process
		started <- nil
		c.exit = cmd.Wait()
		if c.wanted.Load() {
			log.Error("PostgreSQL has ended by itself", "pid", c.pid, "exit", exitError(c.exit), "log", logSince(f, logPos))
		}
	})
	if err := <-started; err != nil {
		c.helpers.Wait()
		return nil, err
	}
	c.helpers.Go(func() { keepLogSmall(f, c.done) })
	return c, nil
}

// gone reports whether the process has been reaped.
func (c *child) gone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// signal signals the postmaster; os.ErrProcessDone when it has ended.
func (c *child) signal(sig os.Signal) error { return c.proc.Signal(sig) }

// Death signals. A postmaster shuts down fast on SIGINT; a helper has nothing to save.
const (
	deathOfServer = syscall.SIGINT
	deathOfHelper = syscall.SIGKILL
)
