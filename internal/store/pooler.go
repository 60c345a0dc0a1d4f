package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A transaction pooler gives each transaction another server connection: named prepared statements, LISTEN and session
// locks do not survive there. It is known by its own backend key: the pid that it tells at the start is not the server's.

// detectPooler looks before anything is prepared.
func (s *Store) detectPooler(ctx context.Context) error {
	cfg := s.conn.Copy()
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("database check: %w", err)
	}
	defer closeSoon(conn)
	pooled, err := behindPooler(ctx, conn)
	if err != nil {
		return fmt.Errorf("database check: %w", err)
	}
	if pooled {
		s.pooled.Store(true)
		s.log.Info("a connection pooler stands before the database; statements are not kept prepared")
	}
	return nil
}

func behindPooler(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var pid uint32
	err := conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid)
	return err == nil && pid != conn.PgConn().PID(), err
}

// connConfig is for connections outside the pool.
func (s *Store) connConfig() *pgx.ConnConfig {
	cfg := s.conn.Copy()
	s.suit(cfg)
	return cfg
}

// suit has a connection work behind a pooler.
func (s *Store) suit(cfg *pgx.ConnConfig) {
	if s.pooled.Load() {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	s.onlyNewest(cfg)
}
