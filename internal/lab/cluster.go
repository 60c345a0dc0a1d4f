package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn/internal/embedpg"
)

// cluster is a private PostgreSQL with a migrated template, in a folder of its own.
type cluster struct {
	*embedpg.Server
	dir string
	own bool // a single trial's: it goes with its trial, whatever state it is in
	n   int  // databases made so far; checks run one after the other
}

// errNoPostgreSQL says that nothing could be shown on this machine.
var errNoPostgreSQL = errors.New("no PostgreSQL can be started here")

const templateDB = "lab_template"

// startCluster starts PostgreSQL below a fresh folder and has the program under test make the schema.
func startCluster(ctx context.Context, opt Options) (*cluster, error) {
	dir, err := tempDir("posthorn-lab-pg-")
	if err != nil {
		return nil, err
	}
	c, err := launchCluster(ctx, opt, dir, nil)
	if err != nil {
		return nil, err
	}
	if err := c.template(ctx, opt.Program); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// launchCluster starts PostgreSQL below a folder, which may hold a data folder of ours already; the folder is the
// cluster's from now on.
func launchCluster(ctx context.Context, opt Options, dir string, params map[string]string) (*cluster, error) {
	all := map[string]string{"max_connections": "150"}
	maps.Copy(all, params)
	pg, err := embedpg.Start(ctx, embedpg.Config{DataDir: filepath.Join(dir, "pg"), BinDir: opt.PgBin, Params: all, DieWithParent: true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errNoPostgreSQL, err), os.RemoveAll(dir))
	}
	return &cluster{Server: pg, dir: dir}, nil
}

// tempDir makes a folder that PostgreSQL's own user can walk through; root's own temporary folder may be closed to others.
func tempDir(pattern string) (string, error) {
	root := os.TempDir()
	if os.Geteuid() == 0 && !open(root) {
		root = "/tmp"
	}
	dir, err := os.MkdirTemp(root, pattern)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// open tells whether everybody may walk to a folder.
func open(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		up := filepath.Dir(dir)
		if up == dir {
			return true
		}
		dir = up
	}
}

// template has `posthorn migrate` make the schema once; each trial's database is a copy.
func (c *cluster) template(ctx context.Context, path string) error {
	if err := c.admin(ctx, "CREATE DATABASE "+templateDB+" OWNER posthorn"); err != nil {
		return err
	}
	s := &supervisor{dir: c.dir, hist: newHistory()}
	defer s.stop()
	p, err := s.start(program{name: "migrate", path: path, args: []string{"migrate", "--database-url", c.at(templateDB, c.URL())}})
	if err != nil {
		return err
	}
	switch code, err := p.wait(ctx); {
	case err != nil:
		return err
	case code != 0:
		return fmt.Errorf("posthorn migrate ended with status %d: %s", code, p.tail(20))
	}
	return nil
}

func (c *cluster) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(c.Stop(ctx), os.RemoveAll(c.dir))
}

// admin runs a statement on the cluster's first database, as a superuser.
func (c *cluster) admin(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, c.SuperURL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

func (c *cluster) at(name, raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw // embedpg made it
	}
	u.Path = "/" + name
	return u.String()
}

// pgLog gives the last lines that PostgreSQL wrote.
func (c *cluster) pgLog(lines int) string {
	b, err := os.ReadFile(c.LogFile())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
