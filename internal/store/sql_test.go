package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthorn/posthorn/internal/pgtest"
)

func state(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// posthorn.send holds what it is given to the rules of a frame.
func TestSQLSendRules(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana", "bo")
	s, _ := open(t, url)
	conv := group(t, s, "ana")
	c := connect(t, url)
	send := func(conv, sender, cmid string, body, data *string) error {
		var seq int64
		return c.QueryRow(t.Context(), "select seq from posthorn.send($1, $2, $3, $4, $5)", conv, sender, cmid, body, data).Scan(&seq)
	}
	str := func(x string) *string { return &x }
	for name, x := range map[string]struct {
		err  error
		want string
	}{
		"no content":         {send(conv, "ana", "m", nil, nil), "PH400"},
		"empty cmid":         {send(conv, "ana", "", str("x"), nil), "PH400"},
		"long cmid":          {send(conv, "ana", strings.Repeat("x", 65), str("x"), nil), "PH400"},
		"long conv":          {send(strings.Repeat("x", 129), "ana", "m", str("x"), nil), "PH400"},
		"too large":          {send(conv, "ana", "m", str(strings.Repeat("x", 65537)), nil), "PH413"},
		"no member":          {send(conv, "bo", "m", str("x"), nil), "PH404"},
		"no conversation":    {send("nowhere", "ana", "m", str("x"), nil), "PH404"},
		"data no JSON":       {send(conv, "ana", "m", nil, str("{")), "PH400"},
		"data no object":     {send(conv, "ana", "m", nil, str("[1]")), "PH400"},
		"data with NUL":      {send(conv, "ana", "m", nil, str(`{"a":"\u0000"}`)), "PH400"},
		"lone surrogate":     {send(conv, "ana", "m", nil, str(`{"a":"\ud800"}`)), "PH400"},
		"repeated name":      {send(conv, "ana", "m", nil, str(`{"a":1,"a":2}`)), "PH400"},
		"repeated name deep": {send(conv, "ana", "m", nil, str(`{"x":[{"y":{"a":1,"a":2}}]}`)), "PH400"},
		"too deep":           {send(conv, "ana", "m", nil, str(`{"x":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`}`)), "PH400"},
		"escaped backslash":  {send(conv, "ana", "ok1", nil, str(`{"a":"\\u0000"}`)), ""},
		"largest":            {send(conv, "ana", "ok2", str(strings.Repeat("x", 65536)), nil), ""},
		"deep enough":        {send(conv, "ana", "ok3", nil, str(`{"x":`+strings.Repeat("[", 62)+strings.Repeat("]", 62)+`}`)), ""},
		"numbers untouched":  {send(conv, "ana", "ok4", nil, str(`{"n": 1E3, "z": -0}`)), ""},
		"system":             {send(conv, "", "ok5", str("x"), nil), ""},
	} {
		if got := state(x.err); got != x.want || (x.want == "") != (x.err == nil) {
			t.Errorf("%s: %q (%v), want %q", name, got, x.err, x.want)
		}
	}
	if d := pgtest.Query[string](t, url, "select data from posthorn.events where cmid = 'ok4'"); d != `{"n": 1E3, "z": -0}` {
		t.Errorf("data is kept as %s", d)
	}
	if n := pgtest.Query[int64](t, url, "select posthorn.head($1)", conv); n != 6 {
		t.Errorf("head %d: a refused send took a seq", n)
	}
}

// In REPEATABLE READ the snapshot may be older than the newest event: the caller is told to begin again, and no number is
// given twice.
func TestSQLSendInRepeatableRead(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana")
	s, _ := open(t, url)
	conv := group(t, s, "ana")
	c := connect(t, url)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		tx, err := c.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "select 1 from posthorn.conversations"); err != nil {
			t.Fatal(err)
		}
		do(t, s, msg(conv, "ana", "between "+string(level), "x"))
		_, err = tx.Exec(t.Context(), "select posthorn.send($1, 'ana', $2, 'x')", conv, "mine "+string(level))
		if state(err) != "40001" {
			t.Fatalf("%s: %v", level, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Exec(t.Context(), "select posthorn.send($1, 'ana', $2, 'x')", conv, "mine "+string(level)); err != nil {
			t.Fatalf("%s, again: %v", level, err)
		}
	}
	if n := pgtest.Query[int64](t, url, "select posthorn.head($1)", conv); n != 5 {
		t.Errorf("head %d", n)
	}
}

// The application's role may send and nothing else.
func TestSQLSendAsTheApplication(t *testing.T) {
	url := pgtest.URL(t)
	people(t, url, "ana")
	s, _ := open(t, url)
	conv := group(t, s, "ana")
	c, err := pgx.Connect(t.Context(), pgtest.SuperURL(t, url))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	if _, err := c.Exec(t.Context(), "set role posthorn_app"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "select posthorn.send($1, 'ana', 'm', 'x', '{\"a\":1}')", conv); err != nil {
		t.Fatalf("send: %v", err)
	}
	for _, q := range []string{"select * from posthorn.events", "delete from posthorn.conversations", "select posthorn.send_batch('', 0, '', false, null, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
		"insert into posthorn.users (user_id) values ('eve')"} {
		if _, err := c.Exec(t.Context(), q); state(err) != "42501" {
			t.Errorf("%.40s: %v", q, err)
		}
	}
}
