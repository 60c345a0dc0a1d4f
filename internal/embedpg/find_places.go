package embedpg

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"syscall"
)

// packaged are the folders in which packagers put the server programs, as patterns.
var packaged = []string{
	"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                   // PostgreSQL's own packages for Red Hat
	"/usr/lib/postgresql*/bin",           // SUSE
	"/usr/libexec/postgresql*",           // Alpine
	"/opt/homebrew/opt/postgresql@*/bin", // Homebrew on Apple silicon
	"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// candidates lists the folders to look in, best first: what the person chose by PATH,
// what is packaged (newest first), what the project fetched for itself.
func candidates() []string {
	var dirs []string
	for _, name := range []string{"postgres", "pg_ctl"} {
		if path, err := exec.LookPath(name); err == nil {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(real))
			}
		}
	}
	for _, pattern := range packaged {
		dirs = append(dirs, newestFirst(pattern)...)
	}
	if root := projectDir(); root != "" {
		dirs = append(dirs, newestFirst(filepath.Join(root, "*", "bin"))...)
	}
	return dirs
}

var number = regexp.MustCompile(`\d+`)

// newestFirst expands a pattern and orders it by the last number in each path.
func newestFirst(pattern string) []string {
	dirs, _ := filepath.Glob(pattern) // the only error is a malformed pattern
	version := func(dir string) int {
		all := number.FindAllString(dir, -1)
		if len(all) == 0 {
			return 0
		}
		n, _ := strconv.Atoi(all[len(all)-1])
		return n
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return dirs
}

// projectDir is .pg of the working directory or of the Go module around it.
func projectDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	if pg := filepath.Join(dir, ".pg"); trusted(pg) {
		return pg
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			if pg := filepath.Join(dir, ".pg"); trusted(pg) {
				return pg
			}
			return ""
		}
	}
	return ""
}

// trusted reports whether dir is a folder that only we or root can fill: running programs
// found from the working directory is not safe otherwise.
func trusted(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	return (owner == 0 || int(owner) == os.Geteuid()) && info.Mode().Perm()&0o022 == 0
}

// installCommand is the one command that brings PostgreSQL to this platform.
func installCommand() string {
	if runtime.GOOS == "darwin" {
		return "brew install postgresql@17"
	}
	sudo := "sudo "
	if os.Geteuid() == 0 {
		sudo = ""
	}
	for _, m := range []struct{ tool, command string }{
		{"apt-get", "apt-get install -y postgresql"},
		{"dnf", "dnf install -y postgresql-server"},
		{"zypper", "zypper install -y postgresql-server"},
		{"pacman", "pacman -S --noconfirm postgresql"},
		{"apk", "apk add postgresql"},
	} {
		if _, err := exec.LookPath(m.tool); err == nil {
			return sudo + m.command
		}
	}
	return "make pg VERSION=17"
}
