package embedpg

import (
	"errors"
	"os"
	"syscall"
)

// process is a live PostgreSQL process on our data folder: its program is named postgres
// and its working directory is the folder, which is where PostgreSQL sets it and which no
// other user could make it.
//
// The handle is opened before the process is looked at (processes_linux.go), so that a
// signal goes to the process that was looked at and not to a later owner of its pid. On
// systems whose handles are plain pids a moment of doubt remains.
type process struct {
	pid    int
	handle *os.Process
}

func (p process) signal(sig syscall.Signal) error {
	err := p.handle.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// only keeps the process with the pid, and releases the others.
func only(all []process, pid int) []process {
	var kept []process
	for _, p := range all {
		if p.pid == pid {
			kept = append(kept, p)
		} else {
			_ = p.handle.Release()
		}
	}
	return kept
}

func release(all []process) {
	for _, p := range all {
		_ = p.handle.Release()
	}
}

// exists reports whether the pid is taken, by whomever; a zombie counts.
func exists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
