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
