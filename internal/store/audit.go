package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
)

// audit is the standing check of the tail by other means: heads of conversations that were written lately, and cursors
// that should have caught up. It trusts neither the tail's snapshot nor the fan-out's memory (D5).
type audit struct {
	low     string    // of the reading before the last one: what is looked at began after it
	next    string    // of the last reading
	due     time.Time // of the next one
	batches int64     // own batches up to here must have been handed on before the reading is judged
	rows    []auditRow
}

// auditRow is one stretch that the database holds.
type auditRow struct {
	conv        string
	first, last int64
	head        int64
	present     []string // whom it brought in, and who are members still
}

// auditSample is how many cursors are looked at.
const auditSample = 256

// runAudit is a step of the tail's goroutine: it reads, and judges once the tail has gone past what was read.
func (s *Store) runAudit(ctx context.Context) error {
	a := &s.audit
	if a.rows != nil && s.tail.oldest() > a.batches {
		rows := a.rows
		a.rows = nil
		return s.judge(ctx, rows)
	}
	every := 10 * s.cfg.Limits.SweepInterval
	if every <= 0 || a.rows != nil || time.Now().Before(a.due) {
		return nil
	}
	a.due = time.Now().Add(every)
	batches := s.tail.newest()
	rows, snapshot, err := s.auditRows(ctx, a.low)
	if err != nil {
		return err
	}
	a.low, a.next = a.next, snapshot
	if a.low != "" {
		a.batches, a.rows = batches, rows
		s.tail.wake()
	}
	return s.auditCursors(ctx)
}

func (s *Store) auditRows(ctx context.Context, low string) (all []auditRow, snapshot string, err error) {
	var from *string
	if low != "" {
		from = &low
	}
	all = []auditRow{}
	rows, err := s.pool.Query(ctx, s.sql(auditSQL), from)
	if err != nil {
		return nil, "", err
	}
	var conv *string
	var first, last, head *int64
	var present []string
	_, err = pgx.ForEachRow(rows, []any{&snapshot, &conv, &first, &last, &head, &present}, func() error {
		if conv != nil {
			all = append(all, auditRow{conv: *conv, first: *first, last: *last, head: *head, present: present})
		}
		conv, present = nil, nil
		return nil
	})
	return all, snapshot, err
}

// judge reads out what the fan-out lacks of it.
func (s *Store) judge(ctx context.Context, rows []auditRow) error {
	var convs []string
	var first, last []int64
	seen := map[string]bool{}
	for _, r := range rows {
		from, to := s.cfg.Fanout.Behind(r.conv, r.head), r.head
		if from == 0 && len(r.present) > 0 && s.cfg.Fanout.Unaware(r.conv, r.present, r.first) {
			from, to = r.first, max(r.head, r.last)
		}
		if from == 0 || seen[r.conv] {
			continue
		}
		seen[r.conv] = true
		convs, first, last = append(convs, r.conv), append(first, from), append(last, to)
	}
	if len(convs) == 0 {
		return nil
	}
	s.stats.audited.Add(int64(len(convs)))
	s.alarm("the audit found events that the log tail had not brought; they are pushed now", "conversations", len(convs))
	return s.readOut(ctx, convs, first, last)
}

// auditCursors holds a sample of the lag set to what is stored.
func (s *Store) auditCursors(ctx context.Context) error {
	claims := s.cfg.Fanout.Caught(auditSample)
	if len(claims) == 0 {
		return nil
	}
	n := len(claims)
	convs, devices, installs, heads := make([]string, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, c := range claims {
		convs[i], devices[i], installs[i], heads[i] = c.Conv, c.DeviceID, c.Install, c.Head
	}
	rows, err := s.pool.Query(ctx, s.sql(claimsSQL), convs, devices, installs, heads)
	if err != nil {
		return err
	}
	stored, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c posthorn.Claim, err error) {
		err = row.Scan(&c.Conv, &c.DeviceID, &c.Install, &c.Head, &c.Delivered)
		return c, err
	})
	if err != nil {
		return err
	}
	if wrong := s.cfg.Fanout.Correct(stored); wrong > 0 {
		s.stats.corrected.Add(int64(wrong))
		s.alarm("the audit found devices that lag without being known to; they are hinted now", "cursors", wrong)
	}
	return nil
}
