package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
)

// writer owns one connection on which transactions follow one another. It belongs to one goroutine.
type writer struct {
	s      *Store
	conn   *pgx.Conn
	lane   string // names it in what the gateway remembers
	used   time.Time
	pid    uint32      // the backend that ran the last transaction
	warned atomic.Bool // PostgreSQL warned since the transaction began
}

func (s *Store) newWriter(lane string) *writer { return &writer{s: s, lane: lane} }

func (w *writer) close() {
	if w.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = w.conn.Close(ctx)
		w.conn = nil
	}
}

// dial opens a connection of its own, for the listener.
func (s *Store) dial(ctx context.Context) (*pgx.Conn, error) {
	if _, err := fault.Hit(fault.StoreListen); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, s.connConfig())
}

// connect opens the writer's connection. Once it stands its dialler is sealed: pgx sends a cancel request over a second
// connection when the first one breaks, and a cancelled COMMIT that waits for a standby counts as committed here while
// the standby may never get it.
func (w *writer) connect(ctx context.Context) error {
	cfg := w.s.connConfig()
	var sealed atomic.Bool
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if sealed.Load() {
			return nil, errors.New("no cancel requests for batches")
		}
		return dial(ctx, network, addr)
	}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			w.warned.Store(true)
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	sealed.Store(true)
	if err != nil {
		return err
	}
	w.conn = conn
	return nil
}

// probe drops a connection that ended while it was idle: nothing was sent on it, so nothing need become unknown.
func (w *writer) probe() {
	if w.conn == nil || time.Since(w.used) < 200*time.Millisecond {
		return
	}
	ctx, cancel := context.WithTimeout(w.s.hard, 5*time.Second)
	defer cancel()
	if w.conn.Ping(ctx) != nil {
		w.close()
	}
}

// tx runs BEGIN, the guard, one statement and COMMIT in one round trip. The error is nil (committed), ErrUnknown (who knows), or
// anything else: then nothing was committed. point lies between the statement and COMMIT; "" for none.
func (w *writer) tx(point fault.Point, sql string, args []any, scan func(pgx.Row) error) error {
	steady, err := w.s.guarded()
	if err != nil {
		return err
	}
	w.probe()
	w.used = time.Now()
	if w.conn == nil || w.conn.IsClosed() {
		ctx, cancel := context.WithTimeout(w.s.hard, 5*time.Second)
		err := w.connect(ctx)
		cancel()
		if err != nil {
			return err
		}
	}
	w.warned.Store(false)
	// Ending the wait by closing the socket sends nothing to the server, unlike a cancelled context.
	raw := w.conn.PgConn().Conn()
	stuck := time.AfterFunc(w.s.cfg.Limits.BatchDeadline, func() { _ = raw.Close() })
	defer stuck.Stop()
	release := context.AfterFunc(w.s.hard, func() { _ = raw.Close() })
	defer release()

	if point != "" && fault.Armed(point) {
		err = w.apart(point, steady, sql, args, scan)
	} else {
		err = w.pipelined(steady, sql, args, scan)
	}
	if err == nil && w.warned.Load() {
		return fmt.Errorf("%w: COMMIT came with a warning", posthorn.ErrUnknown)
	}
	return w.sort(err)
}

func (w *writer) pipelined(steady []any, sql string, args []any, scan func(pgx.Row) error) error {
	b := &pgx.Batch{}
	b.Queue("begin")
	if w.s.syncLow.Load() {
		b.Queue("set local synchronous_commit = on")
	}
	b.Queue(w.s.sql(guardSQL), steady...)
	b.Queue(sql, args...).QueryRow(scan)
	b.Queue("commit").Exec(committed)
	return w.conn.SendBatch(context.Background(), b).Close()
}

// apart is the same with COMMIT as a message of its own, so that the fault point lies between result and COMMIT.
func (w *writer) apart(point fault.Point, steady []any, sql string, args []any, scan func(pgx.Row) error) error {
	ctx := context.Background()
	tx, err := w.conn.Begin(ctx)
	if err != nil {
		return err
	}
	if w.s.syncLow.Load() {
		if _, err := tx.Exec(ctx, "set local synchronous_commit = on"); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, w.s.sql(guardSQL), steady...); err != nil {
		return err
	}
	if err := scan(tx.QueryRow(ctx, sql, args...)); err != nil {
		return err
	}
	if drop, err := fault.Hit(point); drop || err != nil {
		return errors.Join(&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "57000", Message: "injected fault"}, tx.Rollback(ctx))
	}
	return tx.Commit(ctx)
}

// committed tells COMMIT from the ROLLBACK that PostgreSQL makes of it in a failed transaction.
func committed(ct pgconn.CommandTag) error {
	if ct.String() != "COMMIT" {
		return &pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "25P02", Message: "the transaction was rolled back"}
	}
	return nil
}

// sort tells a refusal, after which nothing is committed, from a broken connection, after which nobody knows.
func (w *writer) sort(err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" {
		if w.conn.PgConn().TxStatus() != 'I' {
			ctx, cancel := context.WithTimeout(w.s.hard, 5*time.Second)
			defer cancel()
			if _, rerr := w.conn.Exec(ctx, "rollback"); rerr != nil {
				_ = w.conn.Close(ctx)
			}
		}
		return err
	}
	if pgconn.SafeToRetry(err) {
		return err
	}
	_ = w.conn.PgConn().Conn().Close()
	return fmt.Errorf("%w: %w", posthorn.ErrUnknown, err)
}
