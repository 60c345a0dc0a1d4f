package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
)

// look is one reading of the tail, all of it from one snapshot.
type look struct {
	snapshot string
	mark     string
	timeline string
	epoch    int64
	beat     int64 // of this gateway, in the database
	floor    int64 // the least that it must be
	behind   bool  // the snapshot ends below the last one
	trimmed  bool  // rows that were not read may be gone
	readOnly bool
	rows     []commitRow
	signals  []signal
}

func (s *Store) look(ctx context.Context) (*look, error) {
	var last *string
	if s.tail.last != "" {
		last = &s.tail.last
	}
	floor := s.guard.beat.Load() // before the snapshot: the next heartbeat may be confirmed meanwhile
	rows, err := s.pool.Query(ctx, s.sql(tailSQL), last, s.cfg.Gateway)
	if err != nil {
		return nil, err
	}
	l := &look{floor: floor}
	var source, origin, key, payload *string
	var batch *int64
	var r commitRow
	_, err = pgx.ForEachRow(rows, []any{&l.snapshot, &l.mark, &l.epoch, &l.timeline, &l.beat, &l.behind, &l.trimmed, &l.readOnly,
		&source, &origin, &batch, &r.convs, &r.first, &r.last, &r.users, &key, &payload}, func() error {
		switch {
		case source == nil:
		case *source == "commit":
			r.origin, r.batch = *origin, *batch
			l.rows = append(l.rows, r)
			r = commitRow{}
		default:
			g := signal{kind: *source, key: *key}
			if payload != nil {
				g.payload = *payload
			}
			l.signals = append(l.signals, g)
		}
		return nil
	})
	return l, err
}

// sortOut leaves the rows whose events must be read: a row of our own batch in flight waits for its outcome, and one that
// was answered is on its way from memory. Each row passes here once: what is kept for later has passed.
func (s *Store) sortOut(rows []commitRow) (read []commitRow) {
	for _, r := range rows {
		if fault.Drop(fault.StoreDrain) || (r.origin == s.cfg.Gateway && s.tail.mine(r)) {
			continue
		}
		read = append(read, r)
	}
	return read
}

// handOn reads the events that somebody here waits for. A conversation that one row brings to somebody is wanted in all
// rows of the same look: the fan-out learns of it only when the events are delivered.
func (s *Store) handOn(ctx context.Context, read []commitRow) error {
	wanted := map[string]bool{}
	for _, r := range read {
		for _, c := range r.convs {
			wanted[c] = wanted[c] || s.cfg.Fanout.Wants(c, r.users)
		}
	}
	var convs []string
	var first, last []int64
	for _, r := range read {
		for i, c := range r.convs {
			if wanted[c] {
				convs, first, last = append(convs, c), append(first, r.first[i]), append(last, r.last[i])
			}
		}
	}
	return s.readOut(ctx, convs, first, last)
}

// readOut reads stretches of events and delivers them, in portions that bound memory.
func (s *Store) readOut(ctx context.Context, convs []string, first, last []int64) error {
	const portion = 256 // events of 64 KiB at most
	var pc []string
	var pf, pl []int64
	room := int64(portion)
	flush := func() error {
		if len(pc) == 0 {
			return nil
		}
		events, err := s.events(ctx, rangesSQL, pc, pf, pl)
		if err == nil { // the connection may have led to another life of the database
			err = s.steady(ctx)
		}
		if err != nil {
			return err
		}
		d := make([]posthorn.Committed, len(events))
		for j := range events {
			d[j] = posthorn.Committed{Event: events[j], Prev: events[j].Seq - 1, Epoch: s.Epoch()}
		}
		s.witness.saw(d)
		s.cfg.Fanout.Deliver(d)
		pc, pf, pl, room = nil, nil, nil, portion
		return nil
	}
	for i, conv := range convs {
		for from := first[i]; from <= last[i]; {
			to := min(from+room-1, last[i])
			pc, pf, pl = append(pc, conv), append(pf, from), append(pl, to)
			room -= to - from + 1
			from = to + 1
			if room == 0 {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}
