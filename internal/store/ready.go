package store

import "time"

// Condition is one thing that must hold before this process should get traffic.
type Condition struct {
	Name string
	OK   bool
	Why  string
}

// staleTail is the age from which the log counts as unread; the poll reads it at least every second.
const staleTail = 5 * time.Second

// Ready tells from memory whether the database takes writes, the tail is being read, and the doorbell is heard.
func (s *Store) Ready() []Condition {
	s.tail.mu.Lock()
	read, readOnly := s.tail.readAt, s.tail.readOnly
	s.tail.mu.Unlock()
	fresh := time.Since(read) < staleTail+s.cfg.Limits.TailPollMax
	db := Condition{Name: "database", OK: fresh && !readOnly}
	switch {
	case !fresh && time.Since(time.Unix(s.stats.lastRefused.Load(), 0)) < 30*time.Second:
		db.Why = "an older primary has come back; it is refused"
	case !fresh:
		db.Why = "the database does not answer"
	case readOnly:
		db.Why = "the database is read-only"
	}
	tail := Condition{Name: "tail", OK: fresh}
	if !fresh {
		tail.Why = "the log was not read lately"
	}
	why := s.guard.reason()
	history := Condition{Name: "history", OK: why == "", Why: why}
	bell := Condition{Name: "doorbell", OK: s.cfg.Poll}
	if s.cfg.Poll {
		bell.Why = "polling"
	} else if err := s.deaf(); err != nil {
		bell.Why = err.Error()
	} else {
		bell.OK = true
	}
	return []Condition{db, tail, history, bell}
}
