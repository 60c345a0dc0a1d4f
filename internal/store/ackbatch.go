package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
)

// runAcks flushes what was gathered, AckFlush after the first of it came, later while old transactions keep PostgreSQL from
// pruning the versions that each flush leaves. Stop gets one last flush.
func (s *Store) runAcks() {
	for {
		select {
		case <-s.quit:
			s.acks.close()
			_ = s.flushAcks()
			return
		case <-s.acks.wake:
		}
		wait := s.cfg.Limits.AckFlush
		if s.held.Load() {
			wait = s.cfg.Limits.AckStretched
		}
		if !s.pause(wait) {
			continue
		}
		if err := s.flushAcks(); err != nil {
			s.warnTail(err)
			s.pause(500 * time.Millisecond)
		}
	}
}

// pause waits; false: Stop has been called.
func (s *Store) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.quit:
		return false
	case <-t.C:
		return true
	}
}

// flushAcks writes one batch.
func (s *Store) flushAcks() error {
	acks, firsts := s.acks.take()
	ctx, cancel := context.WithTimeout(s.hard, 10*time.Second)
	defer cancel()
	if len(firsts) > 0 {
		s.flushFirsts(ctx, firsts)
	}
	if len(acks) == 0 {
		return nil
	}
	keys := make([]ackKey, 0, len(acks))
	for k := range acks {
		if err := s.current(k.epoch); err != nil {
			s.turnAway(acks[k], err)
			continue
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil
	}
	return s.flushKeys(ctx, keys, acks)
}

// flushKeys writes some of the cursors. One that the database refuses must not keep the others from being written.
func (s *Store) flushKeys(ctx context.Context, keys []ackKey, acks map[ackKey]*pendingAck) error {
	n := len(keys)
	convs, devices, installs, seqs := make([]string, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, k := range keys {
		convs[i], devices[i], installs[i], seqs[i] = k.conv, k.device, k.install, acks[k].top()
	}
	codes, stored, err := s.writeAcks(ctx, convs, devices, installs, seqs)
	var pg *pgconn.PgError
	switch {
	case err == nil:
		s.stats.acks.Add(int64(n))
		for i, k := range keys {
			s.told(k, acks[k], posthorn.Code(codes[i]), stored[i])
		}
		return nil
	case errors.As(err, &pg) && (dataError(pg) || pg.Code == lockNotAvailable) && n > 1:
		return errors.Join(s.flushKeys(ctx, keys[:n/2], acks), s.flushKeys(ctx, keys[n/2:], acks))
	case errors.As(err, &pg) && dataError(pg):
		s.log.Error("an ack is refused by the database", "error", err)
		s.told(keys[0], acks[keys[0]], posthorn.CodeInternal, 0)
		return nil
	}
	for _, k := range keys {
		s.keep(k, acks[k], err)
	}
	return err
}

func (s *Store) writeAcks(ctx context.Context, convs []string, devices, installs, seqs []int64) (codes []string, stored []int64, err error) {
	args, err := s.guarded(convs, devices, installs, seqs)
	if err != nil {
		return nil, nil, err
	}
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// A first ack shares a lock on its conversation's row, which a stranger may hold for long: nobody else's ack waits for it.
	if _, err = tx.Exec(ctx, ackLockSQL); err != nil {
		return nil, nil, err
	}
	if err = tx.QueryRow(ctx, s.sql(ackBatchSQL), args...).Scan(&codes, &stored); err != nil {
		return nil, nil, err
	}
	if _, err = fault.Hit(fault.AckBeforeCommit); err != nil {
		return nil, nil, err
	}
	if err = tx.Commit(ctx); err != nil {
		return nil, nil, err
	}
	_, err = fault.Hit(fault.AckAfterCommit)
	return codes, stored, err
}

// turnAway answers acks that mean nothing any more.
func (s *Store) turnAway(p *pendingAck, err error) {
	for _, x := range p.parts {
		if x.done != nil {
			x.done(0, err)
		}
	}
}

// keep puts acks back after a failed flush; who has waited long is told to come again, the seq stays.
func (s *Store) keep(k ackKey, p *pendingAck, err error) {
	if time.Since(p.since) > ackPromise {
		top := p.top()
		s.turnAway(p, unavailable("the database is away", err))
		p = &pendingAck{parts: []part{{seq: top}}, since: p.since}
	}
	s.acks.putBack(k, p)
}

// told hands out the result of one cursor. Where the largest seq was too large the others are judged in the next flush.
func (s *Store) told(k ackKey, p *pendingAck, code posthorn.Code, stored int64) {
	switch code {
	case "":
		s.cfg.Fanout.Delivered(k.device, k.conv, stored)
		for _, x := range p.parts {
			if x.done != nil {
				x.done(stored, nil)
			}
		}
	case posthorn.CodeCursorAhead:
		rest := &pendingAck{since: p.since}
		for _, x := range p.parts {
			switch {
			case x.seq <= stored:
				rest.parts = append(rest.parts, x)
			case x.done != nil:
				x.done(0, posthorn.Errorf(posthorn.CodeCursorAhead, "seq=%d head=%d", x.seq, stored))
			}
		}
		if len(rest.parts) > 0 {
			s.acks.putBack(k, rest)
		}
	default:
		for _, x := range p.parts {
			if x.done != nil {
				x.done(0, refusal(code, ackRefusals[code]))
			}
		}
	}
}

var ackRefusals = map[posthorn.Code]string{
	posthorn.CodeStaleInstall:    "a newer install of this device exists",
	posthorn.CodeInternal:        "internal error",
	posthorn.CodeUnauthenticated: "the device is revoked",
}

// flushFirsts voids previous nonces; when it fails they stay good a little longer.
func (s *Store) flushFirsts(ctx context.Context, firsts []posthorn.Session) {
	slices.SortFunc(firsts, func(a, b posthorn.Session) int { return cmp.Compare(a.Viewer.DeviceID, b.Viewer.DeviceID) })
	devices, resumes := make([]int64, len(firsts)), make([]string, len(firsts))
	for i, f := range firsts {
		devices[i], resumes[i] = f.Viewer.DeviceID, f.Resume
	}
	if _, err := s.pool.Exec(ctx, s.sql(firstFrameSQL), devices, resumes); err != nil {
		s.log.Debug("previous nonces stay good", "error", err)
	}
}
