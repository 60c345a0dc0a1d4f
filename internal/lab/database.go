package lab

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthorn/posthorn/internal/embedpg"
)

// cluster is a private PostgreSQL with a migrated template, in a folder of its own.
type cluster struct {
	*embedpg.Server
	dir string
	n   int // databases made so far; checks run one after the other
}

// errNoPostgreSQL says that nothing could be shown on this machine.
var errNoPostgreSQL = errors.New("no PostgreSQL can be started here")

const templateDB = "lab_template"

// startCluster starts PostgreSQL below a fresh folder and has the program under test make the schema.
func startCluster(ctx context.Context, opt Options, params map[string]string) (*cluster, error) {
	dir, err := tempDir("posthorn-lab-pg-")
	if err != nil {
		return nil, err
	}
	all := map[string]string{"max_connections": "150"}
	for k, v := range params {
		all[k] = v
	}
	pg, err := embedpg.Start(ctx, embedpg.Config{DataDir: filepath.Join(dir, "pg"), BinDir: opt.PgBin, Params: all, DieWithParent: true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errNoPostgreSQL, err), os.RemoveAll(dir))
	}
	c := &cluster{Server: pg, dir: dir}
	if err := c.template(ctx, opt.Program); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
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

// database is one trial's. The lab reads it as a superuser; the gateways get url, that of the ordinary role.
type database struct {
	c    *cluster
	name string
	url  string
	pool *pgxpool.Pool
}

func (c *cluster) database(ctx context.Context) (*database, error) {
	c.n++
	d := &database{c: c, name: fmt.Sprintf("lab_%d", c.n)}
	d.url = c.at(d.name, c.URL())
	if err := c.admin(ctx, "CREATE DATABASE "+d.name+" TEMPLATE "+templateDB+" OWNER posthorn"); err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(c.at(d.name, c.SuperURL()))
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 4
	cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	cfg.ConnConfig.RuntimeParams["application_name"] = labSession
	if d.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	return d, nil
}

const (
	labSession    = "posthorn lab"
	serverSession = "posthorn" // what the gateways call themselves
)

// drop ends what is connected and removes the database.
func (d *database) drop() error {
	d.pool.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return d.c.admin(ctx, "DROP DATABASE IF EXISTS "+d.name+" WITH (FORCE)")
}

// one reads a single row.
func (d *database) one(ctx context.Context, query string, args []any, into ...any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return d.pool.QueryRow(ctx, query, args...).Scan(into...)
}

// sessions counts the gateways' sessions that a condition holds for.
func (d *database) sessions(ctx context.Context, condition string) (n int, err error) {
	err = d.one(ctx, `select count(*) from pg_stat_activity where datname = current_database() and application_name = $1 and (`+condition+`)`,
		[]any{serverSession}, &n)
	return n, err
}

// settings are those that promises depend on, as the database tells them to the gateways' role.
func (d *database) settings(ctx context.Context) (fsync, commit string, err error) {
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = conn.QueryRow(ctx, `select current_setting('fsync'), current_setting('synchronous_commit')`).Scan(&fsync, &commit)
	return fsync, commit, err
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
