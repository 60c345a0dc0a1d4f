package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A URL may name several hosts, and after a failover the old primary may come back among them, taking writes. Each new
// connection is held to the highest timeline that was seen of this cluster, so that the next host is tried instead; where
// there is none, the tail's own comparison refuses it.

// onlyNewest adds this to what a connection must fulfil.
func (s *Store) onlyNewest(cfg *pgx.ConnConfig) {
	also := cfg.ValidateConnect
	cfg.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		if also != nil {
			if err := also(ctx, c); err != nil {
				return err
			}
		}
		system, seen := s.witness.timeline()
		if seen == "" {
			return nil
		}
		res, err := c.Exec(ctx, primarySQL).ReadAll()
		if err != nil {
			return err
		}
		if row := res[0].Rows[0]; string(row[0]) == fmt.Sprint(system) && len(row[1]) > 0 && string(row[1]) < seen {
			s.olderPrimary(string(row[1]), seen)
			return fmt.Errorf("an older primary: its timeline %s ended when %s began", row[1], seen)
		}
		return nil
	}
}

// olderPrimary is told to people, once in ten seconds.
func (s *Store) olderPrimary(timeline, seen string) {
	s.stats.refused.Add(1)
	now := time.Now().Unix()
	if last := s.stats.lastRefused.Load(); now-last >= 10 && s.stats.lastRefused.CompareAndSwap(last, now) {
		s.alarm("an older primary has come back and takes writes; it is refused", "timeline", timeline, "seen", seen)
	}
}
