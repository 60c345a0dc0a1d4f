package store

import "github.com/posthorn/posthorn"

// delivery is what one transaction of ours committed; maybe nothing new.
type delivery struct {
	batch  int64
	events []posthorn.Committed
}

// runDeliver hands committed batches on while the next one is in flight. One goroutine, so that the batches of a
// conversation keep their order.
func (s *Store) runDeliver() {
	for d := range s.out {
		s.handed(d)
	}
}

// handed gives a batch to the fan-out. Only then is it no longer in flight, for the audit.
func (s *Store) handed(d delivery) {
	if len(d.events) > 0 {
		s.touched(d.events)
		s.witness.saw(d.events)
		s.cfg.Fanout.Deliver(d.events)
	}
	s.tail.end(d.batch, false)
}
