package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn/internal/embedpg"
)

// The environment in which withpg tells tests of the shared cluster.
const (
	EnvSuper = "POSTHORN_TEST_SUPER_URL" // a superuser
	EnvRole  = "POSTHORN_TEST_DATABASE_URL"
)

// Cluster is a private PostgreSQL that dies with the process which started it.
type Cluster struct {
	*embedpg.Server
	dir string
}

// StartCluster makes one in a temporary folder. params are settings for postgresql.conf.
func StartCluster(ctx context.Context, params map[string]string) (*Cluster, error) {
	dir, err := os.MkdirTemp(tempRoot(), "posthorn-test-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the database's own user passes through
		return nil, err
	}
	all := map[string]string{"max_connections": "300", "shared_buffers": "256MB", "autovacuum_naptime": "10s"}
	for k, v := range params {
		all[k] = v
	}
	s, err := embedpg.Start(ctx, embedpg.Config{DataDir: filepath.Join(dir, "pg"), BinDir: os.Getenv("POSTHORN_PG_BIN"), Params: all, DieWithParent: true})
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return &Cluster{Server: s, dir: dir}, nil
}

// tempRoot is a folder that another user can reach.
func tempRoot() string {
	if os.Geteuid() == 0 {
		return "/tmp"
	}
	return os.TempDir()
}

// Close stops the cluster and removes its folder.
func (c *Cluster) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := c.Stop(ctx)
	if rerr := os.RemoveAll(c.dir); err == nil {
		err = rerr
	}
	return err
}

// roles makes the cluster-wide roles that the migrations grant to; the server's own role may not.
func roles(ctx context.Context, conn *pgx.Conn) error {
	for _, r := range []string{"posthorn_app", "posthorn_read"} {
		var there bool
		if err := conn.QueryRow(ctx, "select exists (select 1 from pg_roles where rolname = $1)", r).Scan(&there); err != nil {
			return err
		}
		if !there {
			if _, err := conn.Exec(ctx, "create role "+r+" nologin"); err != nil {
				return fmt.Errorf("role %s: %w", r, err)
			}
		}
	}
	return nil
}
