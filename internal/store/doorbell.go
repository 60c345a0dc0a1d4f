package store

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5/pgconn"
)

// Above muteAt PostgreSQL's notification queue is about to fill, since somebody listens and does not read: every
// notifying COMMIT would fail then. Sends go without a bell until it is at unmuteAt again, and the gateways poll.
const (
	muteAt   = 0.75
	unmuteAt = 0.25
)

// notify sends a proof for the listener, and looks at the queue by the way.
func (s *Store) notify(ctx context.Context, channel, payload string) error {
	var usage float64
	if err := s.pool.QueryRow(ctx, s.sql(notifySQL), channel, payload).Scan(&usage); err != nil {
		return s.plain(err)
	}
	s.queueUsed(usage)
	return nil
}

func (s *Store) queueUsed(usage float64) {
	s.stats.queueUsage.Store(math.Float64bits(usage))
	switch {
	case usage > muteAt && !s.muted.Swap(true):
		s.alarm("PostgreSQL's notification queue is filling: a session listens and does not read; sends go without the doorbell", "usage", usage)
	case usage < unmuteAt && s.muted.Swap(false):
		s.log.Info("the doorbell rings again", "usage", usage)
	}
}

// channel is where sends ring; "" for nowhere.
func (s *Store) channel() string {
	if s.muted.Load() {
		return ""
	}
	return s.cfg.Channel
}

// deaf tells why the doorbell may not be heard; nil: it is.
func (s *Store) deaf() error {
	err := s.bell.Up()
	if err != nil && s.pooled.Load() {
		return errors.New("LISTEN does not pass the connection pooler that stands before the database: use --doorbell poll, or a URL of the server itself")
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return errors.New("the listening connection cannot be made") // the log says more than everybody may read
	}
	return err
}

// plain takes off what people need not see of a database error; a connection error may name hosts, never a password.
func (s *Store) plain(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return errors.New(pg.Message)
	}
	return err
}
