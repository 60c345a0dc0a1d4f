package gateway

import (
	"context"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// subscription is a socket's with the hub.
type subscription struct {
	turn     chan struct{} // held while a sub is worked on; guards what follows
	active   bool
	activate func() // of a subscription whose list could not be read: the next sub goes on with it
}

// sub lists conversations, and the first time on a connection begins the pushes, whichever page of the list it asks for.
// The order is: the hub begins to buffer, the list is read, subbed is queued, the pushes begin. So what is committed
// before the list is in it, what is committed after the hub began is pushed, and nothing is pushed before subbed.
func sub(ctx context.Context, r *request, f wire.Frame) {
	q := f.(*wire.Sub)
	s := r.s
	if !r.room(ctx) {
		return
	}
	select {
	case s.sub.turn <- struct{}{}:
		defer func() { <-s.sub.turn }()
	case <-ctx.Done():
		return
	}
	if !s.sub.active && s.sub.activate == nil {
		activate, err := s.g.cfg.Hub.Subscribe(ctx, s)
		if err != nil {
			r.fail(err)
			return
		}
		s.sub.activate = activate
	}
	list, err := s.g.cfg.Log.Conversations(ctx, s.session.Viewer, posthorn.ListQuery{
		Since: q.Since, After: q.After, Limit: s.g.pageLimit(q.Limit),
	})
	if err != nil {
		r.fail(err)
		return
	}
	r.answer(&wire.Subbed{RID: r.rid, Convs: list.Entries, Next: list.Next, Since: list.Since})
	if !s.sub.active {
		s.sub.active = true
		s.sub.activate()
		s.sub.activate = nil
	}
}
