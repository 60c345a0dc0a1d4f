package embedpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating-system user that PostgreSQL runs as.
type account struct {
	name     string
	uid, gid int
	cred     *syscall.Credential // nil: we run it as ourselves
}

// chooseAccount answers "as whom?". PostgreSQL refuses to run as root, so root drops to
// the owner of an existing cluster (taking it from them would lock them out), else to the
// user postgres, else to nobody.
func chooseAccount(clusterDir string) (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{name: "uid " + strconv.Itoa(uid), uid: uid, gid: os.Getegid()}, nil
	}
	if info, err := os.Stat(clusterDir); err == nil {
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 {
			return dropTo("uid "+strconv.Itoa(int(st.Uid)), int(st.Uid), int(st.Gid)), nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil && uid != 0 {
			return dropTo(name, uid, gid), nil
		}
	}
	return account{}, errors.New("embedpg: PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody to run it as; create one: useradd --system postgres")
}

func dropTo(name string, uid, gid int) account {
	return account{name: name, uid: uid, gid: gid, cred: &syscall.Credential{
		Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{uint32(gid)},
	}}
}

// checkReach proves that the account can enter dir, by entering it. The mode bits alone
// would not do: access lists and security modules have a say too.
func (a account) checkReach(ctx context.Context, b binaries, dir string) error {
	if a.cred == nil {
		return nil
	}
	cmd := command(ctx, b, a, "postgres", "--version")
	cmd.Dir = dir
	err := runHelper(cmd)
	if errors.Is(err, fs.ErrPermission) {
		return a.barrier(dir)
	}
	return err
}

// barrier explains why the account cannot reach dir: it names the outermost folder on the
// way that shuts it out, and the remedy.
func (a account) barrier(dir string) error {
	closed := dir
	for _, d := range ancestors(dir) {
		if info, err := os.Stat(d); err == nil && !a.mayEnter(info) {
			closed = d
			break
		}
	}
	return fmt.Errorf("PostgreSQL must not run as root, and its user (%s) may not enter %s on the way to %s: run chmod o+x %s, or choose a folder elsewhere",
		a.name, closed, dir, closed)
}

func (a account) mayEnter(info fs.FileInfo) bool {
	st := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	switch {
	case int(st.Uid) == a.uid:
		return mode&0o100 != 0
	case int(st.Gid) == a.gid:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

// ancestors lists the folders from / down to dir, dir included.
func ancestors(dir string) []string {
	if parent := filepath.Dir(dir); parent != dir {
		return append(ancestors(parent), dir)
	}
	return []string{dir}
}

func ownerOf(path string) (uid int, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), nil
}

// own gives path to the account.
func (a account) own(path string) error {
	if a.cred == nil {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}
