package embedpg

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxSocketDir leaves room for "/.s.PGSQL.5432" below the 104 bytes (Darwin; 108 on
// Linux) of sockaddr_un.sun_path.
const maxSocketDir = 90

// socketDir is the folder of the Unix socket. It does not lie in the data folder, whose
// path may be too long for a socket or on a file system that has none; and TMPDIR is not
// asked, because it may be long too and may differ at the next start.
type socketDir struct {
	path string
	lock *os.File // flock on the folder: nobody else uses it
	made bool     // ours to remove
}

// openSocketDir makes or reuses the folder whose name follows from the data folder. The
// name can be foreseen, so others may have taken it: an existing folder is used only when
// it is PostgreSQL's user's own, private and unlocked, else the next name is tried.
func openSocketDir(ctx context.Context, explicit string, f folder, acct account) (*socketDir, error) {
	if explicit != "" {
		return openExplicitDir(ctx, explicit, acct)
	}
	sum := sha256.Sum256([]byte(f.root))
	var last error
	for _, base := range []string{"/tmp", "/var/tmp"} {
		if info, err := os.Stat(base); err != nil || info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
			last = fmt.Errorf("%s is missing, or everybody may rename its folders", base)
			continue
		}
		for n := range 8 {
			path := filepath.Join(base, fmt.Sprintf("posthorn-%x", sum[:8]))
			if n > 0 {
				path += fmt.Sprintf("-%d", n)
			}
			dir, err := makeDir(ctx, path, acct, true)
			if err == nil {
				dir.made = true // by this start, or by one that was killed
				return dir, nil
			}
			last = err
		}
	}
	return nil, fmt.Errorf("embedpg: no place for the socket: %w; name one in Config.SocketDir", last)
}

func openExplicitDir(ctx context.Context, explicit string, acct account) (*socketDir, error) {
	path, err := filepath.Abs(explicit)
	if err == nil && strings.ContainsAny(path, `,"`) { // lists of folders to PostgreSQL and to clients
		err = fmt.Errorf("%s has a comma or a quotation mark in its path", path)
	}
	if err == nil && len(path) > maxSocketDir {
		err = fmt.Errorf("%s has %d bytes, a Unix socket allows %d", path, len(path), maxSocketDir)
	}
	var dir *socketDir
	if err == nil {
		dir, err = makeDir(ctx, path, acct, false)
	}
	if err != nil {
		return nil, fmt.Errorf("embedpg: socket folder: %w", err)
	}
	return dir, nil
}

// makeDir makes, checks and locks one folder. The checks are made on the opened folder,
// so that nothing can be exchanged between check and use; a folder that somebody chose
// (not private) is only locked.
func makeDir(ctx context.Context, path string, acct account, private bool) (*socketDir, error) {
	err := os.Mkdir(path, 0o700)
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if made || private {
		err = checkPrivate(file, acct)
	}
	if err == nil {
		err = flock(ctx, file)
	}
	if err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%s is %w", path, ErrInUse)
		}
		return nil, err
	}
	dir := &socketDir{path: path, lock: file, made: made}
	// Leftovers of a killed server; we hold its data folder and this one, so it is gone.
	// PostgreSQL itself would refuse to start when the pid in the lock file lives again.
	dir.clear()
	return dir, nil
}

func checkPrivate(dir *os.File, acct account) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if owner == 0 && acct.cred != nil { // only root can have made it: just now, or before a crash
		owner, err = acct.uid, dir.Chown(acct.uid, acct.gid)
	}
	if err == nil && (owner != acct.uid || info.Mode().Perm() != 0o700) {
		err = fmt.Errorf("%s belongs to uid %d with mode %o, not to uid %d with mode 700", dir.Name(), owner, info.Mode().Perm(), acct.uid)
	}
	return err
}

func (d *socketDir) clear() {
	_ = os.Remove(filepath.Join(d.path, ".s.PGSQL."+port))
	_ = os.Remove(filepath.Join(d.path, ".s.PGSQL."+port+".lock"))
}

// release removes the socket, and the folder when it is ours.
func (d *socketDir) release() error {
	d.clear()
	var err error
	if d.made {
		err = os.Remove(d.path)
	}
	return errors.Join(err, d.lock.Close())
}
