package store

import (
	"context"
	"sync/atomic"
)

// guard is the life of the database that this gateway has compared with what it has seen. Every statement that serves
// clients names it and is refused where the database is not in that life any more (function posthorn.space), so that no
// history is shown or continued before it was compared (E1).
type guard struct {
	mark  atomic.Pointer[string] // boot mark; nil: shut, nothing is served
	beat  atomic.Int64           // the newest heartbeat that the database has confirmed
	epoch atomic.Int64
	why   atomic.Pointer[string] // why it is shut
}

func (g *guard) shut(why string) {
	g.why.Store(&why)
	g.mark.Store(nil)
}

func (g *guard) open(mark string, epoch int64) {
	g.epoch.Store(epoch)
	g.mark.Store(&mark)
}

// reason is "" where the guard is open.
func (g *guard) reason() string {
	if g.mark.Load() != nil {
		return ""
	}
	return *g.why.Load()
}

// guarded puts the guard behind the arguments of a statement, as its last four. The error says that nothing is served.
func (s *Store) guarded(args ...any) ([]any, error) {
	mark := s.guard.mark.Load()
	if mark == nil {
		return nil, unavailable(s.guard.reason(), nil)
	}
	return append(args, s.cfg.Gateway, *mark, s.guard.beat.Load(), s.guard.epoch.Load()), nil
}

// steady runs the guard alone, where a statement found nothing: "there is no such thing" is an answer too.
func (s *Store) steady(ctx context.Context) error {
	args, err := s.guarded()
	if err != nil {
		return err
	}
	var epoch int64
	return s.readError(s.pool.QueryRow(ctx, s.sql(guardSQL), args...).Scan(&epoch))
}

// current refuses what was asked in a session of another epoch: the seqs that it names mean something else now. The
// session's connection is about to be closed.
func (s *Store) current(epoch int64) error {
	if epoch != 0 && epoch != s.guard.epoch.Load() {
		return unavailable("the epoch has changed; connect again", nil)
	}
	return nil
}

// Epoch of the sequence space, as last compared.
func (s *Store) Epoch() int64 { return s.guard.epoch.Load() }

// readError classifies an error, and has the tail compare where the guard was refused.
func (s *Store) readError(err error) error {
	err = readError(err)
	if err != nil && unsteady(err) {
		s.tail.wake()
	}
	return err
}
