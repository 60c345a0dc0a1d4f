package store

import (
	"context"
	"time"
)

// trimEvery is how often rows that every reader has passed are looked for; one gateway at a time does it.
const trimEvery = time.Minute

// runTrim keeps event_commits and signals short. A reader that was away for longer compares heads.
func (s *Store) runTrim() {
	for s.pause(min(trimEvery, max(s.cfg.Limits.TailKeep/4, time.Second))) {
		ctx, cancel := context.WithTimeout(s.hard, 30*time.Second)
		if err := s.trimTail(ctx); err != nil {
			s.log.Debug("the log tail was not trimmed", "error", err)
		}
		cancel()
	}
}

func (s *Store) trimTail(ctx context.Context) error {
	var bound *string
	return s.pool.QueryRow(ctx, s.sql(trimSQL), interval(s.cfg.Limits.TailKeep), interval(s.cfg.Limits.ConsumerKeep)).Scan(&bound)
}
