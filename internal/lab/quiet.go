package lab

import "time"

// A gateway's poll slows down while nothing comes: each of its looks at the log is twice as long after the one before. What
// comes right after a look that was late is brought by the doorbell, or not before the next one, which is later still.

// gapAtLeast is how late a look must be; the next one then comes no sooner than after twice the time.
const gapAtLeast = 1200 * time.Millisecond

// promptly is the bound of what only a bell can have brought.
const promptly = 1500 * time.Millisecond

// quiet waits for such a look of the gateway that connects by a role.
func (t *trial) quiet(role string) {
	var before, last time.Time
	changes := 0 // the first look that is seen may be an old one: a session tells its newest query only
	t.until("the poll of "+role+" to have slowed down", func() (bool, error) {
		var at *time.Time
		err := t.db.one(t.ctx, `select max(query_start) from pg_stat_activity where datname = current_database() and usename = $1
   and query like '%pg_current_snapshot%' and application_name = $2`, []any{role, serverSession}, &at)
		if err != nil || at == nil || !at.After(last) {
			return false, err
		}
		changes++
		before, last = last, *at
		return changes > 2 && last.Sub(before) >= gapAtLeast, nil
	})
}
