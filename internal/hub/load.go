package hub

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/posthorn/posthorn"
)

const (
	loadTimeout  = 10 * time.Second // of one read
	loadRounds   = 4                // reads until what came meanwhile is left to a later try
	firstBackOff = 50 * time.Millisecond
	lastBackOff  = 5 * time.Second
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

// load reads until every member of the job has a view that covers what has come in meanwhile.
func (h *Hub) load(ctx context.Context, j *job) error {
	for range loadRounds {
		users, conns := h.wanted(j)
		if len(users) == 0 {
			return nil
		}
		views := map[string]*posthorn.View{}
		for part := range slices.Chunk(users, max(1, h.cfg.Limits.AddUsers)) {
			if err := h.readViews(ctx, j.cv.id, part, views); err != nil {
				return err
			}
		}
		for _, x := range conns {
			x.seq = max(x.seq, begun(views[x.conn.viewer.User]))
			if err := h.readEntry(ctx, j, x); err != nil {
				return err
			}
		}
		h.settle(j, views)
	}
	if users, _ := h.wanted(j); len(users) > 0 {
		return errors.New("the views did not catch up with the events")
	}
	return nil
}

// missing is a connection whose entry is to be read, after the join at seq.
type missing struct {
	conn *conn
	seq  int64
}

// wanted lists whose views, and the entries for which connections, are lacking still.
func (h *Hub) wanted(j *job) (users []string, conns []missing) {
	h.lock()
	defer h.unlock()
	rest := j.members[:0]
	for _, x := range j.members {
		if x.m.load != x.ld {
			continue
		}
		rest = append(rest, x)
		users = append(users, x.m.user.name)
		for _, c := range x.m.user.conns {
			if j.lacks(x.ld, c) {
				conns = append(conns, missing{c, x.ld.newest})
			}
		}
	}
	clear(j.members[len(rest):])
	j.members = rest
	return users, conns
}

func (h *Hub) readViews(ctx context.Context, conv string, users []string, into map[string]*posthorn.View) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	views, err := h.cfg.Loader.LoadUsers(ctx, conv, users)
	for i := range views {
		into[views[i].User] = &views[i]
	}
	return err
}

func (h *Hub) readEntry(ctx context.Context, j *job, x missing) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	e, err := h.cfg.Loader.Entry(ctx, x.conn.viewer, j.cv.id)
	if err != nil {
		return err
	}
	if j.entries == nil {
		j.entries = map[*conn]dated{}
	}
	j.entries[x.conn] = dated{&e, x.seq}
	return nil
}

// settle finishes the members whose view has come and is new enough.
func (h *Hub) settle(j *job, views map[string]*posthorn.View) {
	h.lock()
	defer h.unlock()
	for _, x := range j.members {
		if x.m.load != x.ld {
			continue
		}
		v := views[x.m.user.name]
		if from := begun(v); from > x.m.head && from > x.ld.newest {
			// A stay of which nothing was known: its join lies in a hole, or is on its way.
			if !x.ld.enters {
				x.ld.enters, x.ld.first = true, from
			}
			x.ld.newest = from
		}
		switch {
		case v == nil:
			h.drop(x.m) // never was a member
		case v.Head >= x.ld.need && j.complete(x):
			h.finish(x.m, v, j.entries)
		}
	}
}

// begun is the join event of the stay under way, or 0.
func begun(v *posthorn.View) int64 {
	if v == nil || !v.Periods.Present() {
		return 0
	}
	return v.Periods[len(v.Periods)-1].From
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
