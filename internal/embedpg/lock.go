package embedpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// lockGrace is how long Start waits for the lock: the kernel releases it a moment after a
// killed process is gone for its parent, and "run it again at once" must work.
const lockGrace = time.Second

// lockFolder takes the data folder for this process. It is a flock, so the kernel lets go
// of it however we die. The file is opened close-on-exec, so PostgreSQL never holds it;
// and it is never removed, because whoever waited for a removed file would lock nothing.
func lockFolder(ctx context.Context, f folder) (*os.File, error) {
	file, err := os.OpenFile(f.lock(), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedpg: %w", err)
	}
	if err := flock(ctx, file); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(file, 64))
		_ = file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("embedpg: lock %s: %w", f.lock(), err)
		}
		return nil, fmt.Errorf("embedpg: data folder %s is %w (%s); stop it, or name another folder",
			f.root, ErrInUse, strings.TrimSpace(string(holder)))
	}
	// Only for the message above: the lock is what counts, so errors do not matter.
	_ = file.Truncate(0)
	_, _ = fmt.Fprintf(file, "pid %d\n", os.Getpid())
	return file, nil
}

// flock locks without blocking in the kernel, so that it yields to the context.
func flock(ctx context.Context, file *os.File) error {
	deadline := time.Now().Add(lockGrace)
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		if time.Now().After(deadline) {
			return err
		}
		if !pause(ctx) {
			return ctx.Err()
		}
	}
}

// pause is one beat of a poll, where nothing signals; false: the context has ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(10 * time.Millisecond):
		return true
	}
}
