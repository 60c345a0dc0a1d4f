package store

import "github.com/posthorn/posthorn"

// delivery is what one transaction of ours committed.
type delivery = []posthorn.Committed

// runDeliver hands committed batches on while the next one is in flight. One goroutine, so that the batches of a
// conversation keep their order.
func (s *Store) runDeliver() {
	for d := range s.out {
		s.touched(d)
		s.cfg.Fanout.Deliver(d)
	}
}
