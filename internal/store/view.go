package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
)

// view is what decides which events of a conversation somebody may see, read in one snapshot. Events that are read later
// are bounded by its head, so that they are judged by periods that were complete up to there (V1).
type view struct {
	posthorn.View
	title string
	floor int64
	epoch int64
	all   bool // a server key
}

// periodColumns receives the four arrays that memberships are read as.
type periodColumns struct {
	froms, tos, sees []int64
	roles            []string
}

func (p *periodColumns) periods() posthorn.Periods {
	ps := make(posthorn.Periods, len(p.froms))
	for i := range p.froms {
		ps[i] = posthorn.Period{From: p.froms[i], To: p.tos[i], SeesFrom: p.sees[i], Role: posthorn.Role(p.roles[i])}
	}
	*p = periodColumns{}
	return ps
}

// view reads it; NOT_MEMBER where the conversation does not exist and where the user never was in it, alike.
func (s *Store) view(ctx context.Context, v posthorn.Viewer, conv string) (*view, error) {
	x := &view{all: v.Server}
	x.Conv, x.User = conv, v.User
	var p periodColumns
	var stale bool
	if err := s.current(v.Epoch); err != nil {
		return nil, err
	}
	args, err := s.guarded(conv, v.User, v.DeviceID, v.Install)
	if err != nil {
		return nil, err
	}
	err = s.pool.QueryRow(ctx, s.sql(viewSQL), args...).Scan(&x.Kind, &x.title, &x.floor, &x.epoch, &x.Head,
		&p.froms, &p.tos, &p.sees, &p.roles, &x.Visible, &x.HasCursor, &x.Start, &x.Delivered, &stale)
	x.Periods = p.periods()
	if errors.Is(err, pgx.ErrNoRows) {
		if err := s.steady(ctx); err != nil {
			return nil, err
		}
		return nil, refusal(posthorn.CodeNotMember, "")
	}
	switch {
	case err == nil && !x.all && len(x.Periods) == 0:
		return nil, refusal(posthorn.CodeNotMember, "")
	case err != nil:
		return nil, s.readError(err)
	case stale:
		return nil, staleInstall()
	}
	if x.all {
		x.Visible = x.Head
		x.Periods = posthorn.Periods{{From: 1, SeesFrom: 1, Role: posthorn.RoleAdmin}}
	}
	return x, nil
}

// hides is the user whose view of membership events is narrowed, or nil.
func (x *view) hides() *string {
	if x.Kind == posthorn.Channel && x.Periods.Role() == posthorn.RoleMember {
		return &x.User
	}
	return nil
}

// stretches merges the periods into rising stretches [lo, hi] that end at the visible head.
func (x *view) stretches() (lo, hi []int64) {
	for _, p := range x.Periods {
		from, to := min(p.From, p.SeesFrom), p.To
		if to == 0 || to > x.Visible {
			to = x.Visible
		}
		// A later period that shows what lay before swallows the earlier ones.
		for len(lo) > 0 && from <= hi[len(hi)-1]+1 {
			from = min(from, lo[len(lo)-1])
			to = max(to, hi[len(hi)-1])
			lo, hi = lo[:len(lo)-1], hi[:len(hi)-1]
		}
		lo, hi = append(lo, from), append(hi, to)
	}
	return lo, hi
}

// LoadDevice gives the hub the views of all conversations of a device.
func (s *Store) LoadDevice(ctx context.Context, v posthorn.Viewer) ([]posthorn.View, error) {
	return s.views(ctx, deviceViewsSQL, v.User, v.DeviceID, v.Install)
}

// LoadUsers gives the hub the views of users who came into a conversation.
func (s *Store) LoadUsers(ctx context.Context, conv string, users []string) ([]posthorn.View, error) {
	return s.views(ctx, userViewsSQL, conv, users)
}

func (s *Store) views(ctx context.Context, query string, args ...any) ([]posthorn.View, error) {
	args, err := s.guarded(args...)
	if err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, s.sql(query), args...)
	if err != nil {
		return nil, s.readError(err)
	}
	var all []posthorn.View
	var x posthorn.View
	var p periodColumns
	_, err = pgx.ForEachRow(rows, []any{&x.Conv, &x.Kind, &x.User, &x.Head, &p.froms, &p.tos, &p.sees, &p.roles, &x.Visible,
		&x.HasCursor, &x.Start, &x.Delivered}, func() error {
		x.Periods = p.periods()
		all = append(all, x)
		return nil
	})
	if err == nil && len(all) == 0 {
		return nil, s.steady(ctx)
	}
	return all, s.readError(err)
}
