package lab

import (
	"context"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// noise is what other programs do to the same database while a check runs: transactions that are rolled back, and commits
// that do not wait for the disk. Both use up transaction ids whose WAL a crash may lose, so that PostgreSQL hands the same
// ids out again.
type noise struct {
	conn *pgx.Conn
	stop chan struct{}
	wg   sync.WaitGroup
}

const noiseTable = `create table if not exists public.lab_noise (n bigint)`

// burnSQL uses up one transaction id in each of its transactions.
var burnSQL = strings.Repeat("begin; select pg_current_xact_id(); rollback; begin; set local synchronous_commit = off; insert into public.lab_noise values (1); commit; ", 50)

// noise begins to make it, until the trial ends or hush is called. It ends by itself when the database goes away.
func (t *trial) noise() *noise {
	conn, err := pgx.Connect(t.ctx, t.db.pool.Config().ConnString())
	t.must(err)
	_, err = conn.Exec(t.ctx, noiseTable)
	t.must(err)
	n := &noise{conn: conn, stop: make(chan struct{})}
	n.wg.Go(func() {
		defer func() { _ = conn.Close(context.WithoutCancel(t.ctx)) }()
		for {
			select {
			case <-n.stop:
				return
			case <-t.ctx.Done():
				return
			default:
			}
			if _, err := conn.Exec(t.ctx, burnSQL); err != nil {
				return
			}
		}
	})
	t.cleanup(n.hush)
	return n
}

// hush ends it and waits.
func (n *noise) hush() {
	select {
	case <-n.stop:
	default:
		close(n.stop)
	}
	n.wg.Wait()
}

// burn uses up transaction ids and sees to it that the log tail has read past them: only then does it remember a snapshot
// whose ids can be handed out again. It gives the id that would have come next.
func (t *trial) burn() (next int64) {
	conn, err := pgx.Connect(t.ctx, t.db.pool.Config().ConnString())
	t.must(err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.ctx)) }()
	_, err = conn.Exec(t.ctx, noiseTable)
	t.must(err)
	for range 4 {
		_, err = conn.Exec(t.ctx, burnSQL)
		t.must(err)
	}
	t.must(conn.QueryRow(t.ctx, `select pg_snapshot_xmax(pg_current_snapshot())::text::bigint`).Scan(&next))
	t.untilTailHasRead()
	return next
}

// untilTailHasRead waits until the gateway that uses the database's ordinary role has read the log once more. A quiet
// gateway asks for nothing else; once the query is over and its session idle, the answer was given.
func (t *trial) untilTailHasRead() {
	var at string
	t.until("the database's clock", func() (bool, error) {
		err := t.db.one(t.ctx, `select clock_timestamp()::text from posthorn.boot`, nil, &at) // after a crash a gateway puts the mark first
		return err == nil, err
	})
	t.until("the tail to have read the log", func() (read bool, err error) {
		err = t.db.one(t.ctx, `select exists (select 1 from pg_stat_activity where datname = current_database() and usename = 'posthorn'
    and query like '%pg_current_snapshot%' and state = 'idle' and query_start > $1::timestamptz)`, []any{at}, &read)
		return read, err
	})
}

// nextID is the transaction id that comes next.
func (t *trial) nextID() (next int64) {
	t.until("the next transaction id", func() (bool, error) {
		err := t.db.one(t.ctx, `select pg_snapshot_xmax(pg_current_snapshot())::text::bigint`, nil, &next)
		return err == nil, err
	})
	return next
}
