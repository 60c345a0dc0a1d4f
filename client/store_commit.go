package client

import (
	"errors"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// groupJobs bounds how much one transaction takes in.
const groupJobs = 128

// job is one change of the store. fn may run twice: it sets what it reports anew each time. after runs on the writer's
// goroutine when the commit is on disk, in the order of the commits, and must not block or write.
type job struct {
	fn    func(storeTx) error
	after func()
	done  chan error
}

// update carries out fn in a transaction and returns when it is on disk. What waits while the disk is busy shares the
// next transaction, so that a burst of sends costs one fsync and not one each.
func (s *store) update(fn func(storeTx) error, after func()) error {
	j := &job{fn: fn, after: after, done: make(chan error, 1)}
	select {
	case s.work <- j:
		return <-j.done
	case <-s.quit:
		return ErrClosed
	}
}

// view reads a snapshot. Nothing of it may be kept past fn, which must not call update.
func (s *store) view(fn func(storeTx) error) error {
	err := s.db.View(func(tx *bbolt.Tx) error { return fn(storeTx{tx}) })
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// write is the writer goroutine.
func (s *store) write() {
	defer close(s.done)
	for {
		select {
		case j := <-s.work:
			s.commit(s.gather(j))
		case <-s.quit:
			return
		}
	}
}

func (s *store) gather(first *job) []*job {
	jobs := []*job{first}
	for len(jobs) < groupJobs {
		select {
		case j := <-s.work:
			jobs = append(jobs, j)
		default:
			return jobs
		}
	}
	return jobs
}

// commit runs the jobs together. One that fails rolls all back, so then each runs alone and its neighbours succeed.
func (s *store) commit(jobs []*job) {
	failed := false
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for _, j := range jobs {
			if err := j.fn(storeTx{tx}); err != nil {
				failed = true
				return err
			}
		}
		return nil
	})
	if failed && len(jobs) > 1 {
		for _, j := range jobs {
			s.commit([]*job{j})
		}
		return
	}
	for _, j := range jobs {
		if err == nil && j.after != nil {
			j.after()
		}
		j.done <- err
	}
}

// close ends the writer and the file. It waits for transactions that run; it is called once.
func (s *store) close() error {
	close(s.quit)
	<-s.done
	return s.db.Close()
}
