package embedpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// folder names what lies in a data folder (layout in doc.go).
type folder struct{ root string }

const newPrefix = "data.new-" // whatever initdb needs before it is complete

func (f folder) data() string          { return filepath.Join(f.root, "data") }
func (f folder) lock() string          { return filepath.Join(f.root, "lock") }
func (f folder) log() string           { return filepath.Join(f.root, "postgres.log") }
func (f folder) conf() string          { return filepath.Join(f.root, "posthorn.conf") }
func (f folder) password() string      { return filepath.Join(f.root, "password") }
func (f folder) superPassword() string { return filepath.Join(f.root, "superuser-password") }
func (f folder) pidFile() string       { return filepath.Join(f.data(), "postmaster.pid") }

// major is the version that made the cluster, 0 when there is none yet.
func (f folder) major() (int, error) {
	content, err := os.ReadFile(filepath.Join(f.data(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("embedpg: %w", err)
	}
	text := strings.TrimSpace(string(content))
	n, err := strconv.Atoi(text)
	if err != nil { // before version 10 it was 9.6
		return 0, fmt.Errorf("embedpg: %s/PG_VERSION says %q, which is no version that Posthorn can run", f.data(), text)
	}
	return n, nil
}

// claim makes the folder, or checks that an existing one is ours to use, and sets its
// owner and mode. Symbolic links are resolved first, so that one folder has one name.
func claim(dir string, acct account) (folder, error) {
	if err := mkdirs(dir); err != nil {
		return folder{}, fmt.Errorf("embedpg: %w", err)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return folder{}, fmt.Errorf("embedpg: %w", err)
	}
	f := folder{root}
	if err := f.checkOurs(); err != nil {
		return f, err
	}
	if acct.cred == nil {
		return f, os.Chmod(root, 0o700)
	}
	// Root keeps the folder and lets PostgreSQL's user walk through it. Somebody else's
	// folder stays as they made it.
	if uid, err := ownerOf(root); err != nil || uid == 0 {
		return f, errors.Join(err, os.Lchown(root, 0, acct.gid), os.Chmod(root, 0o710))
	}
	return f, nil
}

// mkdirs is MkdirAll whose modes the umask does not change: below root's folders another
// user must be able to walk.
func mkdirs(dir string) error {
	for _, d := range ancestors(dir) {
		if _, err := os.Stat(d); err == nil {
			continue
		}
		err := os.Mkdir(d, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue // somebody else was faster
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Chmod(d, 0o711)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkOurs refuses a folder with foreign content. The lock is the first file that we
// make in an empty folder, so whatever has none was not made by us.
func (f folder) checkOurs() error {
	entries, err := os.ReadDir(f.root)
	if err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Name() != "lost+found" { // a file system mounted here
			names = append(names, e.Name())
		}
	}
	switch {
	case len(names) == 0 || slices.Contains(names, "lock"):
		return nil
	case slices.Contains(names, "PG_VERSION"):
		return fmt.Errorf("embedpg: %s is %w: it is itself a PostgreSQL cluster; name an empty folder, or use --database-url for a server of your own", f.root, ErrForeign)
	}
	return fmt.Errorf("embedpg: %s is %w: it is not empty (%s …); name an empty folder", f.root, ErrForeign, names[0])
}

// sweep removes what an interrupted initdb left. The caller holds the lock, so nobody
// else's initdb is under way.
func (f folder) sweep() error {
	entries, err := os.ReadDir(f.root)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.root, e.Name())))
		}
	}
	return err
}
