package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// WakeTail asks the tail to read at once.
func (s *Store) WakeTail() { s.tail.wake() }

// ring is the doorbell. Our own batches are fanned out from memory.
func (s *Store) ring(pid uint32, _ string) {
	s.tail.mu.Lock()
	own := pid != 0 && s.tail.pids[pid]
	s.tail.mu.Unlock()
	if !own {
		s.tail.wake()
	}
}

// runTail reads at each bell, and by a poll that slows down from the smallest to the largest interval while nothing comes.
func (s *Store) runTail() {
	wait := s.cfg.Limits.TailPollMin
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-s.tail.bells:
		case <-timer.C:
		}
		n, err := s.drain()
		switch {
		case errors.Is(err, errWaiting):
			wait = min(s.cfg.Limits.TailPollMax, 100*time.Millisecond)
		case err != nil:
			s.stats.tailErrors.Add(1)
			s.warnTail(err)
			wait = min(s.cfg.Limits.TailPollMax, 250*time.Millisecond) // however slow the poll: the bell is not heard now either
		case n > 0:
			wait = s.cfg.Limits.TailPollMin
		default:
			wait = min(2*wait, s.cfg.Limits.TailPollMax)
		}
		timer.Reset(wait)
	}
}

// warnTail writes at most one line a second.
func (s *Store) warnTail(err error) {
	if now := time.Now().Unix(); s.stats.lastWarn.Swap(now) != now {
		s.log.Warn("the log tail cannot be read; trying again", "error", err)
	}
}

// drain reads what became visible since last and hands it on; n counts commit rows.
func (s *Store) drain() (n int, err error) {
	ctx, cancel := context.WithTimeout(s.hard, 10*time.Second)
	defer cancel()
	s.tail.begun()
	look, err := s.look(ctx)
	if err != nil {
		return 0, err
	}
	if look.mark == "" {
		// A crash recovery emptied the mark. Whoever finds none puts one; the next look sees it.
		s.guard.shut("PostgreSQL has recovered from a crash")
		if _, err := s.pool.Exec(ctx, s.sql(putBootSQL)); err != nil {
			return 0, err
		}
		s.tail.wake()
		return 0, errWaiting
	}
	if s.anotherLife(look) {
		s.guard.shut("the history of the database is being compared")
		if err := s.compare(ctx, look, true); err != nil {
			s.doubt.Store(true)
			return 0, err
		}
		return 0, s.restart(ctx, look)
	}
	if s.doubt.Swap(false) { // somebody says so; the guard holds meanwhile
		if err := s.compare(ctx, look, false); err != nil {
			s.doubt.Store(true)
			return 0, err
		}
	}
	if look.trimmed {
		return 0, s.restart(ctx, look)
	}
	if s.unsure.Swap(false) {
		if err := s.reload(ctx); err != nil {
			s.unsure.Store(true)
			return 0, err
		}
	}
	s.obey(look.signals) // first: what fails below is tried again, these would be lost
	rows := append(s.tail.takeLate(), s.sortOut(look.rows)...)
	if err := s.handOn(ctx, rows); err != nil {
		s.tail.mu.Lock()
		s.tail.late = append(rows, s.tail.late...)
		s.tail.mu.Unlock()
		s.tail.last = look.snapshot
		return 0, err
	}
	s.tail.last = look.snapshot
	s.touch(look)
	return len(rows) + len(look.signals), s.runAudit(ctx)
}

// anotherLife tells whether what this gateway remembers may not hold any more. last is valid only for the same boot mark and
// insertion timeline, and while the current snapshot does not end below it: after a crash PostgreSQL hands out again the
// transaction ids whose WAL was not flushed. A heartbeat that is gone shows a database that was put back under us.
func (s *Store) anotherLife(l *look) bool {
	return s.tail.last == "" || s.tail.mark != l.mark || s.tail.timeline != l.timeline || l.behind ||
		l.epoch != s.guard.epoch.Load() || l.beat < l.floor || s.guard.reason() != ""
}

// touch notes a reading for Ready.
func (s *Store) touch(l *look) {
	s.tail.mu.Lock()
	s.tail.readAt, s.tail.readOnly, s.tail.stuck = time.Now(), l.readOnly, time.Time{}
	s.tail.mu.Unlock()
}

// restart trusts no remembered transaction id. It takes the fresh snapshot, compares the heads of all conversations with
// local listeners, and reads what signals would have told.
func (s *Store) restart(ctx context.Context, look *look) error {
	if s.tail.last != "" {
		s.log.Warn("the log cannot be read on from where it was; comparing heads", "trimmed", look.trimmed)
	}
	err := s.compareHeads(ctx)
	if err == nil {
		err = s.comeIn(ctx)
	}
	if err == nil {
		err = s.reload(ctx)
	}
	if err != nil {
		s.tail.last = "" // nothing is valid until this has been done
		return err
	}
	s.tail.last, s.tail.mark, s.tail.timeline = look.snapshot, look.mark, look.timeline
	s.audit = audit{due: s.audit.due}
	s.touch(look)
	s.tail.wake()
	return nil
}

// comeIn delivers the events by which those who are connected here came into conversations that nobody has told them of.
func (s *Store) comeIn(ctx context.Context) error {
	names := map[string]bool{}
	for _, v := range s.cfg.Fanout.Devices() {
		names[v.User] = true
	}
	if len(names) == 0 {
		return nil
	}
	users := make([]string, 0, len(names))
	for name := range names {
		users = append(users, name)
	}
	rows, err := s.pool.Query(ctx, s.sql(presentSQL), users)
	if err != nil {
		return err
	}
	var r commitRow
	var conv, user string
	var from int64
	_, err = pgx.ForEachRow(rows, []any{&conv, &user, &from}, func() error {
		if s.cfg.Fanout.Unaware(conv, []string{user}, from) {
			r.convs, r.first, r.last = append(r.convs, strings.Clone(conv)), append(r.first, from), append(r.last, from)
		}
		return nil
	})
	if err != nil || len(r.convs) == 0 {
		return err
	}
	s.stats.repaired.Add(int64(len(r.convs)))
	return s.readOut(ctx, r.convs, r.first, r.last) // what came after is known by the view that this has the hub read
}

// compareHeads reads what the listeners of this process lack, by (conv, seq).
func (s *Store) compareHeads(ctx context.Context) error {
	heads := s.cfg.Fanout.Heads()
	if len(heads) == 0 {
		return nil
	}
	convs := make([]string, 0, len(heads))
	for c := range heads {
		convs = append(convs, c)
	}
	rows, err := s.pool.Query(ctx, s.sql(headsSQL), convs)
	if err != nil {
		return err
	}
	var r commitRow
	var conv string
	var head int64
	_, err = pgx.ForEachRow(rows, []any{&conv, &head}, func() error {
		switch have := heads[conv]; {
		case head > have:
			r.convs, r.first, r.last = append(r.convs, strings.Clone(conv)), append(r.first, have+1), append(r.last, head)
		case head < have:
			s.log.Error("a conversation is shorter than what was pushed of it: the database was rewound", "conv", conv, "head", head, "pushed", have)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.stats.repaired.Add(int64(len(r.convs)))
	return s.readOut(ctx, r.convs, r.first, r.last)
}
