package lab

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// snapshot stops a cluster in order, copies its disk, and starts it again.
func (t *trial) snapshot(c *cluster) (dir string) {
	dir = filepath.Join(c.dir, "snapshot-"+t.cmid())
	t.halt(c)
	t.must(copyTree(c.ClusterDir(), dir, nil))
	t.must(c.Restart(t.ctx))
	t.hist.Add(Record{Who: "postgres", What: Note, Text: "the disk was copied"})
	return dir
}

// rollBack puts a copy in the place of a cluster's disk; meanwhile is done while the cluster is down.
func (t *trial) rollBack(c *cluster, dir string, meanwhile func()) {
	t.halt(c)
	meanwhile()
	t.must(os.RemoveAll(c.ClusterDir()))
	t.must(copyTree(dir, c.ClusterDir(), nil))
	t.rewound("the disk is that of the snapshot")
	t.must(c.Restart(t.ctx))
}

// halt shuts a cluster down fast and waits; the folder stays ours.
func (t *trial) halt(c *cluster) {
	done := c.Done()
	t.must(c.Signal(syscall.SIGINT))
	ctx, cancel := t.deadline("PostgreSQL to shut down")
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
		t.abort("PostgreSQL does not shut down")
	}
}

// rewound notes that the database is another one from here on.
func (t *trial) rewound(how string) { t.hist.Add(Record{Who: "postgres", What: Rewound, Text: how}) }

// copyTree copies folders and files. What vanishes meanwhile is left out: a running PostgreSQL's files may, and its WAL
// repairs that. The owner is the one who copies; embedpg gives a cluster to PostgreSQL's user.
func copyTree(from, to string, leave func(rel string) bool) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(from, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || rerr != nil:
			return errors.Join(err, rerr)
		case leave != nil && leave(rel):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !e.Type().IsRegular():
			return nil
		}
		if err := copyFile(path, filepath.Join(to, rel)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
