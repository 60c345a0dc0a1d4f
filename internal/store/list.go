package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
)

// Conversations lists a user's conversations by id, as the device sees them.
func (s *Store) Conversations(ctx context.Context, v posthorn.Viewer, q posthorn.ListQuery) (posthorn.List, error) {
	if q.Limit <= 0 {
		q.Limit = s.cfg.Limits.PageDefault
	}
	q.Limit = min(q.Limit, s.cfg.Limits.PageEvents)
	mark, now, since, err := s.since(ctx, q.Since)
	if err != nil {
		return posthorn.List{}, s.readError(err)
	}
	l, err := s.entries(ctx, v, q.After, since, nil, q.Limit+1)
	if err != nil {
		return posthorn.List{}, s.readError(err)
	}
	out := posthorn.List{Entries: l, Since: mark + "/" + now}
	if len(l) > q.Limit {
		out.Entries, out.Next = l[:q.Limit], l[q.Limit-1].Conv
	}
	return out, nil
}

// Entry is one conversation as a conv frame shows it.
func (s *Store) Entry(ctx context.Context, v posthorn.Viewer, conv string) (posthorn.Entry, error) {
	if v.Server && v.User == "" {
		return s.wholeEntry(ctx, v, conv)
	}
	l, err := s.entries(ctx, v, "", nil, &conv, 1)
	if err != nil {
		return posthorn.Entry{}, s.readError(err)
	}
	if len(l) == 0 {
		return posthorn.Entry{}, refusal(posthorn.CodeNotMember, "")
	}
	return l[0], nil
}

// wholeEntry is a conversation as a server key sees it: all of it, without a cursor or a read mark.
func (s *Store) wholeEntry(ctx context.Context, v posthorn.Viewer, conv string) (posthorn.Entry, error) {
	x, err := s.view(ctx, v, conv)
	if err != nil {
		return posthorn.Entry{}, err
	}
	e := posthorn.Entry{Conv: conv, Kind: x.Kind, Title: x.title, Head: x.Head, Floor: x.floor, Epoch: x.epoch}
	newest, err := s.events(ctx, rangesSQL, []string{conv}, []int64{x.Head}, []int64{x.Head})
	if err != nil {
		return posthorn.Entry{}, s.readError(err)
	}
	for i := range newest {
		e.Last, e.LastAt = &newest[i], newest[i].At
	}
	return e, nil
}

// since takes the opaque mark apart: the boot mark with the epoch, and the snapshot at which an earlier list was read. A mark of another
// life of the database, or one that cannot be read, means the whole list.
func (s *Store) since(ctx context.Context, mark string) (boot, now string, since *string, err error) {
	// Read before the list, so that what commits meanwhile is in the next one again rather than in none.
	args, err := s.guarded()
	if err != nil {
		return "", "", nil, err
	}
	var trimmed string
	if err = s.pool.QueryRow(ctx, s.sql(bootSQL), args...).Scan(&boot, &now, &trimmed); err != nil {
		return "", "", nil, err
	}
	then, snapshot, ok := strings.Cut(mark, "/")
	if ok && then == boot && validSnapshot(snapshot) && reaches(snapshot, trimmed) {
		since = &snapshot
	}
	return boot, now, since, nil
}

// reaches tells whether all that was committed since the snapshot is still in the log tail.
func reaches(snapshot, trimmed string) bool {
	low, _, _ := strings.Cut(snapshot, ":")
	from, _ := number(low)
	through, ok := number(trimmed)
	return ok && from >= through
}

// validSnapshot keeps what a client made up from becoming a database error.
func validSnapshot(t string) bool {
	parts := strings.Split(t, ":")
	if len(parts) != 3 || len(t) > 4096 {
		return false
	}
	lo, ok1 := number(parts[0])
	hi, ok2 := number(parts[1])
	if !ok1 || !ok2 || lo == 0 || lo > hi {
		return false
	}
	prev := uint64(0)
	for _, x := range strings.Split(parts[2], ",") {
		if parts[2] == "" {
			break
		}
		n, ok := number(x)
		if !ok || n < lo || n >= hi || n <= prev {
			return false
		}
		prev = n
	}
	return true
}

func number(t string) (n uint64, ok bool) {
	for _, c := range t {
		if c < '0' || c > '9' || n > 1<<59 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, t != ""
}

func (s *Store) entries(ctx context.Context, v posthorn.Viewer, after string, since, only *string, limit int) ([]posthorn.Entry, error) {
	if err := s.current(v.Epoch); err != nil {
		return nil, err
	}
	args, err := s.guarded(v.User, after, absent0(v.DeviceID), v.Install, since, only, limit)
	if err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, s.sql(listSQL), args...)
	if err != nil {
		return nil, err
	}
	var list []posthorn.Entry
	var e posthorn.Entry
	var x view
	var p periodColumns
	var now string
	var unread commitRow // the stretches to count in: conversation, lo, hi
	var newest commitRow
	_, err = pgx.ForEachRow(rows, []any{&e.Conv, &e.Kind, &e.Title, &e.Floor, &e.Epoch, &x.Head, &p.froms, &p.tos, &p.sees, &p.roles, &x.Visible,
		&e.Start, &e.Delivered, &e.Read, &e.RV, &now}, func() error {
		x.Periods = p.periods()
		e.Head, e.Role, e.Left = x.Visible, x.Periods.Role(), !x.Periods.Present()
		e.Read = min(e.Read, x.Visible)
		list = append(list, e)
		newest.convs, newest.first, newest.last = append(newest.convs, e.Conv), append(newest.first, x.Visible), append(newest.last, x.Visible)
		los, his := x.stretches()
		for i, lo := range los {
			if lo = max(lo, e.Read+1, e.Floor); lo <= his[i] {
				unread.convs, unread.first, unread.last = append(unread.convs, e.Conv), append(unread.first, lo), append(unread.last, his[i])
			}
		}
		return nil
	})
	if err == nil && len(list) == 0 {
		err = s.steady(ctx)
	}
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list, s.fill(ctx, list, &unread, &newest)
}

// fill adds the newest visible event and the unread count.
func (s *Store) fill(ctx context.Context, list []posthorn.Entry, unread, newest *commitRow) error {
	at := make(map[string]*posthorn.Entry, len(list))
	for i := range list {
		at[list[i].Conv] = &list[i]
	}
	events, err := s.events(ctx, rangesSQL, newest.convs, newest.first, newest.last)
	if err != nil {
		return err
	}
	for i := range events {
		e := at[events[i].Conv]
		e.Last, e.LastAt = &events[i], events[i].At
	}
	rows, err := s.pool.Query(ctx, s.sql(unreadSQL), unread.convs, unread.first, unread.last)
	if err != nil {
		return err
	}
	var conv string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&conv, &n}, func() error {
		at[conv].Unread = n
		return nil
	})
	return err
}
