package gateway

// What a request is to the queue: it is admitted unless the connection ends, and its reply ends it.

type verdict int

const (
	proceed verdict = iota
	refuse          // draining
	suspend         // suspended
	over            // ending
)

// begin admits a request.
func (q *queue) begin(write, evenDraining, evenSuspended bool) verdict {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed || q.ending != nil:
		return over
	case q.parting != nil && !evenDraining:
		return refuse
	case q.asleep.Load() && !evenSuspended:
		return suspend
	}
	if write {
		q.writes++
	}
	return proceed
}

// finish ends a request, with its reply or without one; false: the reply will not be written.
func (q *queue) finish(it item) bool {
	q.mu.Lock()
	if it.req.write {
		q.writes--
	}
	ok := !q.closed && it.frame != nil
	if ok {
		q.items = append(q.items, it)
	}
	q.mu.Unlock()
	q.ring() // also where nothing was added: parting may wait for it
	return ok
}
