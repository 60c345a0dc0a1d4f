package store_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// The statements of the hot path touch rows in proportion to what they are asked, whatever the size of the tables and
// however fresh their statistics: the planner is free to choose, but not to scan. Rows read are counted, not time.
func TestPlansReadWhatTheyAreAskedFor(t *testing.T) {
	const batch = 256
	for _, per := range []int{0, 2, 100} { // events in each of 1,000 conversations
		for _, fresh := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d events, analyzed %v", per*1000, fresh), func(t *testing.T) {
				url := pgtest.URL(t)
				fill(t, url, per)
				if fresh {
					pgtest.Exec(t, url, "analyze")
				}
				c, err := pgx.Connect(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close(t.Context()) }()
				bounds := map[string]struct {
					query string
					most  int64
				}{
					// per message: conversation twice (lock and probe), duplicate, member, newest event
					"send, a conversation each": {sendOf("'c' || (i * 3)"), 12 * batch},
					"send, one conversation":    {sendOf("'c7'::text"), 12 * batch},
					"ack":                       {`select posthorn.ack_batch(array_agg('c' || i), array_agg(1::bigint), array_agg(1::bigint), array_agg(1::bigint)) from generate_series(1, 256) i`, 12 * batch},
					"tail":                      {store.TailSQL, 4 * batch},
				}
				for name, b := range bounds {
					for round := range 8 { // past the five custom plans, into the generic one
						if n := rowsRead(t, c, b.query, round); n > b.most {
							t.Errorf("%s, round %d: %d rows read, at most %d are needed", name, round, n, b.most)
						}
					}
				}
			})
		}
	}
}

func sendOf(conv string) string {
	return `select posthorn.send_batch('b', 1, '', false, null, array_agg(` + conv + `), array_agg('ana'::text), array_agg(1::bigint), array_agg(false),
		array_agg('x' || $1::int || '-' || i), array_agg('body'::text), array_agg(null::text), array_agg(null::bigint)) from generate_series(1, 256) i`
}

// fill makes 1,000 conversations with so many events each, without going through sends.
func fill(t *testing.T, url string, per int) {
	t.Helper()
	pgtest.Exec(t, url, "insert into posthorn.users (user_id) values ('ana')")
	pgtest.Exec(t, url, "insert into posthorn.devices (user_id, device_name, install_epoch) values ('ana', 'phone', 1)")
	pgtest.Exec(t, url, "insert into posthorn.conversations (conv_id, kind) select 'c' || i, 'group' from generate_series(1, 1000) i")
	pgtest.Exec(t, url, "insert into posthorn.memberships (conv_id, user_id, from_seq, sees_from) select 'c' || i, 'ana', 1, 1 from generate_series(1, 1000) i")
	pgtest.Exec(t, url, `insert into posthorn.events (conv_id, seq, kind, mid, sender, device_id, cmid, content_mac, body, msg_no, at)
		select 'c' || i, s, 'msg', gen_random_uuid(), 'ana', 1, 'm' || s, '', 'body', s, now() from generate_series(1, 1000) i, generate_series(1, $1::int) s`, per)
	pgtest.Exec(t, url, `insert into posthorn.event_commits (origin, batch, convs, first_seq, last_seq)
		select 'x', s, array['c1'], array[s], array[s] from generate_series(1, $1::int) s`, 100*per)
}

// rowsRead runs a statement in a transaction that rolls back and counts the rows that its scans returned.
func rowsRead(t *testing.T, c *pgx.Conn, query string, arg any) int64 {
	t.Helper()
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	var args []any
	switch query {
	case store.TailSQL:
		var snapshot string
		if err := tx.QueryRow(t.Context(), "select pg_current_snapshot()::text").Scan(&snapshot); err != nil {
			t.Fatal(err)
		}
		args = []any{&snapshot, "g"}
	default:
		if len(query) > 25 && query[:25] == sendOf("")[:25] {
			args = []any{arg}
		}
	}
	before := scanned(t, tx)
	rows, err := tx.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return scanned(t, tx) - before
}

// scanned is the number of rows that this session's scans have returned and not reported yet.
func scanned(t *testing.T, tx pgx.Tx) (n int64) {
	t.Helper()
	err := tx.QueryRow(t.Context(), `select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint
		from pg_stat_xact_user_tables where schemaname = 'posthorn'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
