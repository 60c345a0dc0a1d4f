package lab

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// database is one trial's. The lab reads it as a superuser; the gateways get url, that of the ordinary role.
type database struct {
	c    *cluster
	name string
	url  string
	pool *pgxpool.Pool
	at   atomic.Pointer[cluster] // c, for the pool, which others use too
}

func (c *cluster) database(ctx context.Context) (*database, error) {
	c.n++
	d := &database{c: c, name: fmt.Sprintf("lab_%d", c.n)}
	d.move(c)
	if err := c.admin(ctx, "CREATE DATABASE "+d.name+" TEMPLATE "+templateDB+" OWNER posthorn"); err != nil {
		return nil, err
	}
	return d, d.open(ctx)
}

// open makes the pool, which follows move.
func (d *database) open(ctx context.Context) error {
	cfg, err := pgxpool.ParseConfig(d.c.at(d.name, d.c.SuperURL()))
	if err != nil {
		return err
	}
	cfg.MaxConns = 4
	cfg.ConnConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.at.Load().SocketPath())
	}
	cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	cfg.ConnConfig.RuntimeParams["application_name"] = labSession
	d.pool, err = pgxpool.NewWithConfig(ctx, cfg)
	return err
}

const (
	labSession    = "posthorn lab"
	serverSession = "posthorn" // what the gateways call themselves
)

// move has the lab read the database of the same name in another cluster, which has the same passwords. It says nothing to
// the gateways.
func (d *database) move(c *cluster) {
	d.c, d.url = c, c.at(d.name, c.URL())
	d.at.Store(c)
	if d.pool != nil {
		d.pool.Reset()
	}
}

// drop ends what is connected and removes the database, unless its cluster goes too.
func (d *database) drop() error {
	if d.pool != nil {
		d.pool.Close()
	}
	if d.c.own {
		return nil
	}
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
