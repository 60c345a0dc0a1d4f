package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// runLease keeps this gateway's lease alive by a heartbeat on a connection of its own. Without the database for two thirds
// of the lease, measured from when the last good heartbeat was begun, the gateway suspends: by then another one may serve
// its devices (G1).
func (s *Store) runLease() {
	var conn *pgx.Conn
	defer func() { closeSoon(conn) }()
	suspendAfter := s.cfg.Limits.GatewayLease * 2 / 3
	good := time.Now()
	for s.pause(s.cfg.Limits.GatewayBeat) {
		began := time.Now()
		ok, err := s.heartbeat(&conn)
		switch {
		case err != nil:
			closeSoon(conn)
			conn = nil
			s.warnTail(err)
		case ok && s.tail.reads(s.cfg.Limits.GatewayLease/3): // else it would not hear that a device has gone elsewhere
			good = began
		case ok:
		default:
			s.doubt.Store(true)
			s.tail.wake()
		}
		switch {
		case time.Since(good) >= suspendAfter:
			s.suspend(true)
		case s.suspended.Load():
			s.resume()
		}
		if err := s.witness.save(); err != nil {
			s.log.Warn("what this gateway has seen cannot be written to its file", "error", err)
		}
	}
}

// leave gives the lease up once nothing of this gateway is written any more; where that fails it runs out by itself.
func (s *Store) leave() {
	_ = s.witness.save()
	if s.started.Load() && s.guard.reason() == "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = s.pool.Exec(ctx, s.sql(leaveSQL), s.cfg.Gateway)
	}
}

// heartbeat is done within one interval, or it counts as none.
func (s *Store) heartbeat(conn **pgx.Conn) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(s.hard, max(s.cfg.Limits.GatewayBeat, 250*time.Millisecond))
	defer cancel()
	if *conn == nil {
		if *conn, err = pgx.ConnectConfig(ctx, s.connConfig()); err != nil {
			*conn = nil
			return false, err
		}
	}
	var beat *int64
	err = (*conn).QueryRow(ctx, s.sql(beatSQL), s.cfg.Gateway, s.guard.beat.Load(), interval(s.cfg.Limits.GatewayLease)).Scan(&beat)
	if err != nil || beat == nil {
		return false, err
	}
	s.guard.beat.Store(max(*beat, s.guard.beat.Load()))
	return s.guard.reason() == "", nil
}

func closeSoon(conn *pgx.Conn) {
	if conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}
}

// suspend tells the sockets; resume reads the generations first, so that a device that has gone elsewhere is let go before
// anything is pushed to it.
func (s *Store) suspend(on bool) {
	if s.suspended.Swap(on) == on {
		return
	}
	if on {
		s.stats.suspensions.Add(1)
		s.log.Warn("the database is away; this gateway suspends its sockets")
	} else {
		s.log.Info("the database is back; this gateway resumes")
	}
	if s.cfg.Suspend != nil {
		s.cfg.Suspend(on)
	}
}

// Suspended tells whether the sockets are to be left alone now.
func (s *Store) Suspended() bool { return s.suspended.Load() }

func (s *Store) resume() {
	ctx, cancel := context.WithTimeout(s.hard, 10*time.Second)
	defer cancel()
	if err := s.reload(ctx); err != nil {
		s.warnTail(err)
		return
	}
	s.suspend(false)
}
