package hub

import (
	"context"
	"time"

	"github.com/posthorn/posthorn"
)

// job reads the views of some members of one conversation, and the list entries that go into their conv frames.
type job struct {
	cv      *conv
	members []entrant
	entries map[*conn]dated
	tries   int
	due     time.Duration // of the next try
}

// dated is an entry that was read after the join at seq.
type dated struct {
	entry *posthorn.Entry
	seq   int64
}

// lacks tells whether a connection must be told of the conversation, and its entry has not been read.
func (j *job) lacks(ld *loading, c *conn) bool {
	return ld.enters && c.knows() && (j.entries[c].entry == nil || j.entries[c].seq < ld.newest)
}

// entrant is void once the member's load is another one: they have gone, perhaps come back.
type entrant struct {
	m  *member
	ld *loading
}

func (j *job) add(m *member, ld *loading) {
	m.load = ld
	j.members = append(j.members, entrant{m, ld})
}

// missing is a connection whose entry is to be read, after the join at seq.
type missing struct {
	conn *conn
	seq  int64
}

// complete tells whether every connection that must be told has its entry: one may have subscribed while others were read.
func (j *job) complete(x entrant) bool {
	for _, c := range x.m.user.conns {
		if j.lacks(x.ld, c) {
			return false
		}
	}
	return true
}

// begun is the join event of the stay under way, or 0.
func begun(v *posthorn.View) int64 {
	if v == nil || !v.Periods.Present() {
		return 0
	}
	return v.Periods[len(v.Periods)-1].From
}

func (h *Hub) enqueue(j *job) {
	if len(j.members) > 0 {
		h.jobs = append(h.jobs, j)
		h.startWorkers()
	}
}

// startWorkers sees that somebody does the jobs.
func (h *Hub) startWorkers() {
	if h.ctx == nil || h.stopped {
		return
	}
	for range min(h.cfg.Loads-h.workers, len(h.jobs)) {
		h.workers++
		h.wg.Go(func() { h.work(h.ctx) })
	}
}

// work does jobs until there are none.
func (h *Hub) work(ctx context.Context) {
	for {
		j := h.nextJob()
		if j == nil {
			return
		}
		if err := h.load(ctx, j); err != nil && ctx.Err() == nil {
			h.retry(j, err)
		}
	}
}

func (h *Hub) nextJob() *job {
	h.lock()
	defer h.unlock()
	if len(h.jobs) == 0 || h.stopped {
		h.workers--
		return nil
	}
	j := h.jobs[0]
	h.jobs[0] = nil
	h.jobs = h.jobs[1:]
	if len(h.jobs) == 0 {
		h.jobs = nil
	}
	return j
}

// retry leaves a job to the clock. It is tried for as long as the members are here: giving up would lose them silently.
func (h *Hub) retry(j *job, err error) {
	h.lock()
	defer h.unlock()
	if h.stopped {
		return
	}
	wait := min(firstBackOff<<min(j.tries, 10), lastBackOff)
	j.tries++
	j.due = h.now + wait
	h.later = append(h.later, j)
	h.n.reloads++
	h.alarm(j.due)
	h.log.Warn("the views of members could not be read; trying again", "conv", j.cv.id, "members", len(j.members), "in", wait, "error", err)
}
