package embedpg

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The socket folder's name can be foreseen. Whatever others put in its place (a folder of
// their own, an open folder, a link, a file) is not used, and is left alone.
func TestSocketDirTaken(t *testing.T) {
	t.Parallel()
	dir := copyFolder(t)
	s := start(t, Config{DataDir: dir})
	usual := filepath.Dir(s.SocketPath())
	stop(t, s)

	target := tempDir(t)
	for name, take := range map[string]func() error{
		"open folder": func() error { return errors.Join(os.Mkdir(usual, 0o700), os.Chmod(usual, 0o777)) },
		"link":        func() error { return os.Symlink(target, usual) },
		"file":        func() error { return os.WriteFile(usual, nil, 0o600) },
		"folder of another user": func() error {
			if !isRoot() {
				return errors.ErrUnsupported
			}
			return errors.Join(os.Mkdir(usual, 0o700), os.Chown(usual, 1, 1))
		},
	} {
		if err := take(); errors.Is(err, errors.ErrUnsupported) {
			t.Logf("NOT_RUN: %s needs root", name)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		s := start(t, Config{DataDir: dir})
		if got := filepath.Dir(s.SocketPath()); got != usual+"-1" {
			t.Errorf("%s: socket in %s", name, got)
		}
		query(t, s.URL(), "select 1")
		stop(t, s)
		if _, err := os.Lstat(usual); err != nil {
			t.Errorf("%s was removed", name)
		}
		must(t, os.Remove(usual))
	}
	// A crash between making the folder and giving it away leaves root's.
	must(t, os.Mkdir(usual, 0o700))
	s = start(t, Config{DataDir: dir})
	if got := filepath.Dir(s.SocketPath()); got != usual {
		t.Errorf("root's own leftover: socket in %s", got)
	}
}

// A chosen folder stays when it was there before, serves one server at a time, and its
// path survives the way through the URL.
func TestSocketDirChosen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), "a b+&c=d%")
	s := start(t, Config{DataDir: copyFolder(t), SocketDir: dir})
	query(t, s.URL(), "select 1")
	if !strings.HasPrefix(s.SocketPath(), dir) {
		t.Errorf("socket %s", s.SocketPath())
	}
	_, err := Start(context.Background(), Config{DataDir: copyFolder(t), SocketDir: dir})
	if !errors.Is(err, ErrInUse) {
		t.Errorf("a second server in the same socket folder: %v", err)
	}
	stop(t, s)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("a folder that Start made was left")
	}
	must(t, os.Mkdir(dir, 0o777))
	must(t, os.Chmod(dir, 0o777))
	s = start(t, Config{DataDir: copyFolder(t), SocketDir: dir})
	stop(t, s)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("a folder that was there before: %v %v", entries, err)
	}
	socketDirs.Delete(dir)
}
