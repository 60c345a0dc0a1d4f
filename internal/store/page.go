package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
)

// events reads events by one of the statements that select eventColumns.
func (s *Store) events(ctx context.Context, query string, args ...any) ([]posthorn.Event, error) {
	rows, err := s.pool.Query(ctx, s.sql(query), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanEvent)
}

// guardedEvents is the same for a statement that ends with the guard.
func (s *Store) guardedEvents(ctx context.Context, query string, args ...any) ([]posthorn.Event, error) {
	args, err := s.guarded(args...)
	if err != nil {
		return nil, err
	}
	events, err := s.events(ctx, query, args...)
	if err == nil && len(events) == 0 { // then the statement's own guard may not have been run
		err = s.steady(ctx)
	}
	return events, err
}

func scanEvent(row pgx.CollectableRow) (posthorn.Event, error) {
	var e posthorn.Event
	var data *string
	err := row.Scan(&e.Conv, &e.Seq, &e.Kind, &e.Mid, &e.Sender, &e.ViaServer, &e.Cmid, &e.Body, &data, &e.ReplyTo, &e.Target, &e.Users, &e.MsgNo, &e.At)
	if data != nil {
		e.Data = []byte(*data)
	}
	return e, err
}

// Page reads events forwards (sync) or backwards (history).
func (s *Store) Page(ctx context.Context, v posthorn.Viewer, q posthorn.PageQuery) (posthorn.Page, error) {
	x, err := s.view(ctx, v, q.Conv)
	if err != nil {
		return posthorn.Page{}, err
	}
	if q.Limit <= 0 {
		q.Limit = s.cfg.Limits.PageDefault
	}
	q.Limit = min(q.Limit, s.cfg.Limits.PageEvents)
	p := posthorn.Page{Conv: q.Conv, Head: x.Visible, Floor: x.floor, Epoch: x.epoch, Start: x.Start}
	switch {
	case q.History:
		err = s.backward(ctx, x, q, &p)
	case q.Tail > 0:
		var after int64
		if after, err = s.markStart(ctx, v, x, min(q.Tail, s.cfg.Limits.PageEvents)); err == nil {
			p.Start = after
			q.Limit = s.cfg.Limits.PageEvents // up to where the mark was set
			err = s.forward(ctx, x, after, q.Limit, &p)
		}
	default:
		err = s.forward(ctx, x, q.After, q.Limit, &p)
	}
	if err != nil {
		return posthorn.Page{}, s.readError(err)
	}
	return p, nil
}

// forward fills a page above after. What the viewer may not see is named in skip; upto never passes the visible head.
func (s *Store) forward(ctx context.Context, x *view, after int64, limit int, p *posthorn.Page) error {
	if after > x.Visible {
		return posthorn.Errorf(posthorn.CodeCursorAhead, "seq=%d head=%d", after, x.Visible)
	}
	at := after
	if after < x.floor-1 {
		at, p.Truncated = min(x.floor-1, x.Visible), true
	}
	lo, hi := x.stretches()
	events, err := s.guardedEvents(ctx, forwardSQL, x.Conv, at, x.Visible, limit+1, s.cfg.Limits.PageBytes*3/4, x.hides(), lo, hi)
	if err != nil {
		return err
	}
	p.Events, p.More = s.trim(events, limit)
	for _, e := range p.Events {
		if e.Seq > at+1 {
			p.Skip = append(p.Skip, [2]int64{at + 1, e.Seq - 1})
		}
		at = e.Seq
	}
	if n := len(p.Events); n > 0 {
		s.witness.served(&p.Events[n-1], x.epoch)
		p.More = p.More || at < x.Visible
	}
	if len(p.Events) == 0 && at < x.Visible { // nothing is stored up there that the viewer may see
		p.Skip = append(p.Skip, [2]int64{at + 1, x.Visible})
		at = x.Visible
	}
	p.Upto = at
	return nil
}

// backward fills a page below before, newest first; it never moves a cursor.
func (s *Store) backward(ctx context.Context, x *view, q posthorn.PageQuery, p *posthorn.Page) error {
	top := x.Visible
	if q.Before > 0 {
		top = min(top, q.Before-1)
	}
	lo, hi := x.stretches()
	events, err := s.guardedEvents(ctx, backwardSQL, x.Conv, x.floor-1, top, q.Limit+1, s.cfg.Limits.PageBytes*3/4, x.hides(), lo, hi)
	if err != nil {
		return err
	}
	p.Events, p.More = s.trim(events, q.Limit)
	p.Truncated = !p.More && x.floor > 1
	p.Upto = top
	if n := len(p.Events); n > 0 {
		p.Upto = p.Events[n-1].Seq
	}
	return nil
}

// trim takes off what was read only to see whether there is more, and what would pass the size of a page once encoded:
// the statement counts stored bytes, and JSON may need six for one.
func (s *Store) trim(events []posthorn.Event, limit int) ([]posthorn.Event, bool) {
	more := len(events) > limit
	if more {
		events = events[:limit]
	}
	size := 0
	for i := range events {
		size += EncodedBound(&events[i])
		if i > 0 && size > s.cfg.Limits.PageBytes-4096 {
			return events[:i], true
		}
	}
	return events, more
}

// EncodedBound is the most that an event takes on the wire.
func EncodedBound(e *posthorn.Event) int {
	n := 400 + len(e.Data) + jsonLen(e.Conv) + jsonLen(e.Sender) + jsonLen(e.Cmid)
	if e.Body != nil {
		n += jsonLen(*e.Body)
	}
	return n
}

func jsonLen(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			n++
		case c < 0x20:
			n += 5
		}
	}
	return n
}

// markStart stores where a device new to a conversation begins, and gives the mark in force.
func (s *Store) markStart(ctx context.Context, v posthorn.Viewer, x *view, n int) (int64, error) {
	if v.DeviceID == 0 {
		return 0, posthorn.Errorf(posthorn.CodeBadFrame, "tail is for devices")
	}
	lo, hi := x.stretches()
	var oldest *int64
	err := s.pool.QueryRow(ctx, s.sql(tailStartSQL), x.Conv, x.floor, x.Visible, n, x.hides(), lo, hi).Scan(&oldest)
	if err != nil {
		return 0, err
	}
	mark := x.Visible
	if oldest != nil {
		mark = *oldest - 1
	}
	var start, delivered int64
	args, err := s.guarded(x.Conv, v.DeviceID, v.Install, mark)
	if err != nil {
		return 0, err
	}
	err = s.pool.QueryRow(ctx, s.sql(markStartSQL), args...).Scan(&start, &delivered)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, staleInstall()
	}
	return min(start, x.Visible), err
}

// Confirm finds the highest pair that the database holds too.
func (s *Store) Confirm(ctx context.Context, v posthorn.Viewer, conv string, pairs []posthorn.Pair) (posthorn.Pair, error) {
	x, err := s.view(ctx, v, conv)
	if err != nil {
		return posthorn.Pair{}, err
	}
	seqs, mids := make([]int64, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		seqs[i], mids[i] = p.Seq, p.Mid
	}
	rows, err := s.pool.Query(ctx, s.sql(confirmSQL), conv, seqs, mids, x.hides())
	if err != nil {
		return posthorn.Pair{}, s.readError(err)
	}
	held, err := pgx.CollectRows(rows, pgx.RowToStructByPos[posthorn.Pair])
	if err != nil {
		return posthorn.Pair{}, s.readError(err)
	}
	if err := s.steady(ctx); err != nil { // by this answer the client cuts its log
		return posthorn.Pair{}, err
	}
	for _, p := range held {
		if p.Seq <= x.Visible && x.Periods.Sees(p.Seq) {
			return p, nil
		}
	}
	return posthorn.Pair{}, nil
}

// Members lists who is in a conversation now.
func (s *Store) Members(ctx context.Context, v posthorn.Viewer, conv, after string, limit int) ([]posthorn.MemberInfo, string, error) {
	x, err := s.view(ctx, v, conv)
	switch {
	case err != nil:
		return nil, "", err
	case !v.Server && !x.Periods.Present():
		return nil, "", refusal(posthorn.CodeNotMember, "")
	case !v.Server && !posthorn.Allowed(x.Kind, posthorn.ActMembers, x.Periods.Role()):
		return nil, "", refusal(posthorn.CodeForbidden, "")
	}
	if limit <= 0 {
		limit = s.cfg.Limits.PageDefault
	}
	limit = min(limit, s.cfg.Limits.PageEvents)
	rows, err := s.pool.Query(ctx, s.sql(membersSQL), conv, after, limit+1)
	if err != nil {
		return nil, "", s.readError(err)
	}
	members, err := pgx.CollectRows(rows, pgx.RowToStructByPos[posthorn.MemberInfo])
	if err != nil || len(members) <= limit {
		return members, "", s.readError(err)
	}
	return members[:limit], members[limit-1].User, nil
}
