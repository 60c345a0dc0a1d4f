package embedpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// binaries is one installed PostgreSQL.
type binaries struct {
	dir     string
	version string // "15.18", "18beta1"
	major   int
}

func (b binaries) program(name string) string { return filepath.Join(b.dir, name) }

// find chooses the server programs. want is the major version that made the cluster, 0
// when there is none yet. Only explicit is tried when it is set. Otherwise programs of
// the wanted version win: an upgrade of the distribution often leaves both, and the
// newer one must not make an existing folder unusable.
func find(ctx context.Context, explicit string, want int, acct account) (binaries, error) {
	if explicit != "" {
		dir, err := filepath.Abs(explicit)
		if err != nil {
			return binaries{}, err
		}
		b, err := inspectBinaries(ctx, dir, acct)
		if err != nil {
			return binaries{}, fmt.Errorf("embedpg: --pg-bin %s: %w", explicit, err)
		}
		return b, nil
	}
	var first binaries
	var refused []string
	for _, dir := range candidates() {
		b, err := inspectBinaries(ctx, dir, acct)
		switch {
		case ctx.Err() != nil:
			return binaries{}, ctx.Err()
		case errors.Is(err, fs.ErrNotExist): // most candidates: not installed
		case err != nil:
			refused = append(refused, dir+": "+err.Error())
		case want == 0 || b.major == want:
			return b, nil
		case first.dir == "":
			first = b
		}
	}
	if first.dir == "" {
		return first, &NotFoundError{Command: installCommand(), Refused: refused}
	}
	return first, nil // of another version than the cluster: checkVersion explains
}

// inspectBinaries asks the programs in dir for their version, as the user that will run
// them, which also proves that this user reaches them.
func inspectBinaries(ctx context.Context, dir string, acct account) (binaries, error) {
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return binaries{}, err
		}
	}
	b := binaries{dir: dir}
	var out strings.Builder
	cmd := command(ctx, b, acct, "postgres", "--version")
	cmd.Stdout, cmd.Stderr = &out, &out
	err := runHelper(cmd)
	if errors.Is(err, fs.ErrPermission) {
		return b, acct.barrier(dir)
	}
	if err != nil { // a missing library, most often: the output names it
		return b, fmt.Errorf("%w: %s", err, lastLines(out.String()))
	}
	if b.version, b.major, err = parseVersion(out.String()); err != nil {
		return b, err
	}
	if b.major < minMajor {
		return b, fmt.Errorf("is PostgreSQL %s, %d or newer is needed", b.version, minMajor)
	}
	return b, nil
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`)

// parseVersion reads "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)".
func parseVersion(out string) (version string, major int, err error) {
	m := versionPattern.FindStringSubmatch(out)
	if m == nil {
		return "", 0, fmt.Errorf("postgres --version says %q, which names no version", out)
	}
	major, err = strconv.Atoi(m[2])
	return m[1], major, err
}

// checkVersion refuses programs that cannot read the cluster.
func checkVersion(dataDir string, dataMajor int, b binaries) error {
	if dataMajor != 0 && dataMajor != b.major {
		return &VersionError{DataDir: dataDir, DataMajor: dataMajor, BinDir: b.dir, BinMajor: b.major}
	}
	return nil
}
