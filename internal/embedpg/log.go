package embedpg

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	maxLog       = 16 << 20
	trimInterval = time.Minute
	tailBytes    = 8 << 10
	tailLines    = 20
)

// openLog opens PostgreSQL's log for appending. The child writes to the file itself, not
// to a pipe of ours, so that it can go on logging when we die.
func openLog(f folder) (*os.File, error) {
	if info, err := os.Lstat(f.log()); err == nil && info.Size() > maxLog {
		if err := os.Rename(f.log(), f.log()+".1"); err != nil {
			return nil, fmt.Errorf("embedpg: %w", err)
		}
	}
	file, err := os.OpenFile(f.log(), os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedpg: %w", err)
	}
	return file, nil
}

// keepLogSmall bounds the log while the child runs, until done is closed. The child keeps
// the file open, so it is copied and cut; lines written meanwhile may be lost.
func keepLogSmall(f folder, done <-chan struct{}) {
	ticker := time.NewTicker(trimInterval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			if info, err := os.Lstat(f.log()); err == nil && info.Size() > maxLog {
				_ = trimLog(f.log()) // again in a minute
			}
		}
	}
}

func trimLog(path string) error {
	from, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(path+".1", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	// The newest lines are worth keeping; a log that grew fast must not fill the disk twice.
	_, err = from.Seek(-maxLog, io.SeekEnd)
	if err == nil {
		_, err = io.Copy(to, io.LimitReader(from, maxLog))
	}
	return errors.Join(err, to.Close(), from.Truncate(0))
}

// logSince returns the last lines that were written after the offset.
func logSince(f folder, offset int64) string {
	file, err := os.Open(f.log())
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	if info.Size() < offset {
		offset = 0 // trimmed meanwhile
	}
	offset = max(offset, info.Size()-tailBytes)
	text, _ := io.ReadAll(io.NewSectionReader(file, offset, tailBytes))
	return lastLines(string(text))
}

// lastLines shortens an output to its end, which is where the reason stands.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
