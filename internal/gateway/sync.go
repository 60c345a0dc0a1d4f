package gateway

import (
	"context"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
	"github.com/posthorn/posthorn/wire"
)

// The reads: each waits for one of the socket's page reads, asks the log once, and answers. The log judges visibility.

func syncPage(ctx context.Context, r *request, f wire.Frame) {
	q := f.(*wire.Sync)
	r.readPage(ctx, fault.SyncPage, posthorn.PageQuery{Conv: q.Conv, After: q.After, Tail: q.Tail, Limit: r.s.g.pageLimit(q.Limit)})
}

func history(ctx context.Context, r *request, f wire.Frame) {
	q := f.(*wire.History)
	r.readPage(ctx, "", posthorn.PageQuery{Conv: q.Conv, Before: q.Before, History: true, Limit: r.s.g.pageLimit(q.Limit)})
}

func (r *request) readPage(ctx context.Context, p fault.Point, q posthorn.PageQuery) {
	if !r.room(ctx) {
		return
	}
	page, err := r.s.g.cfg.Log.Page(ctx, r.s.session.Viewer, q)
	if err == nil && p != "" {
		var drop bool
		if drop, err = fault.Hit(p); drop {
			return
		}
	}
	if err != nil {
		r.fail(err)
		return
	}
	r.answer(&wire.Page{RID: r.rid, Page: page})
}

func members(ctx context.Context, r *request, f wire.Frame) {
	q := f.(*wire.Members)
	if !r.room(ctx) {
		return
	}
	list, next, err := r.s.g.cfg.Log.Members(ctx, r.s.session.Viewer, q.Conv, q.After, r.s.g.pageLimit(q.Limit))
	if err != nil {
		r.fail(err)
		return
	}
	r.answer(&wire.MemberList{RID: r.rid, Conv: q.Conv, Members: list, Next: next})
}

func confirm(ctx context.Context, r *request, f wire.Frame) {
	q := f.(*wire.Confirm)
	if !r.room(ctx) {
		return
	}
	pair, err := r.s.g.cfg.Log.Confirm(ctx, r.s.session.Viewer, q.Conv, q.Pairs)
	if err != nil {
		r.fail(err)
		return
	}
	r.answer(&wire.Confirmed{RID: r.rid, Conv: q.Conv, Seq: pair.Seq, Mid: pair.Mid})
}

// pageLimit fills in an absent limit and cuts a large one.
func (g *Gateway) pageLimit(n int) int {
	if n <= 0 { // absent: wire refuses 0 and below
		n = g.limits.PageDefault
	}
	return min(n, g.limits.PageEvents)
}
