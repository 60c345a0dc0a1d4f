package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// The database drops every session, again and again and in several ways, while a crowd sends. No socket closes, nobody is
// told anything but UNAVAILABLE, whoever was told sent has a row, what was not answered comes back as a duplicate or for
// the first time, and the log stays short.
func TestB70_DatabaseDropsEverySession(t *testing.T) {
	c, err := pgtest.StartCluster(t.Context(), map[string]string{"max_connections": "40"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	n := serve(t, c.URL())
	const people = 8
	crowd := newCrowd(t, n, people, func(cfg *client.Config) { cfg.RequestTimeout = time.Second })
	bo := n.connect(t, "bo", "phone")
	conv := bo.group("room")
	began := time.Now()

	t.Run("terminated under load", func(t *testing.T) {
		every := time.NewTicker(time.Duration(rounds(250, 2000)) * time.Millisecond)
		defer every.Stop()
		for range rounds(4, 30) {
			<-every.C
			drop(t, c, "")
		}
		crowd.more(t, 3*people)
	})
	t.Run("immediate stop and start", func(t *testing.T) {
		if err := c.Immediate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		crowd.more(t, 3*people)
	})
	t.Run("a stranger takes all connections", func(t *testing.T) {
		was := crowd.refused(posthorn.CodeUnavailable)
		leave := occupy(t, c, func() bool { return crowd.refused(posthorn.CodeUnavailable) >= was+people })
		leave()
		crowd.more(t, 3*people)
	})
	t.Run("statement_timeout within a send", func(t *testing.T) {
		bo.t = t
		super(t, c, `create function public.doze() returns trigger language plpgsql as $$ begin perform pg_sleep(2); return new; end $$;
			create trigger doze before insert on posthorn.events for each row when (new.body = 'slow') execute function public.doze();
			alter role posthorn set statement_timeout = '300ms'`)
		drop(t, c, "") // the setting is for new sessions
		crowd.more(t, people)
		body := "slow"
		e := bo.refused(&wire.Send{Conv: conv, Cmid: "slow", Body: &body}, posthorn.CodeUnavailable)
		if e.Retry <= 0 || strings.Contains(e.Msg, "statement") {
			t.Errorf("%+v", e)
		}
		crowd.more(t, people)
		super(t, c, "alter role posthorn reset statement_timeout; drop trigger doze on posthorn.events")
		drop(t, c, "")
		if s := retry(bo, &wire.Send{Conv: conv, Cmid: "slow", Body: &body}); s.Seq != 2 || s.Dup {
			t.Errorf("%+v", s)
		}
		bo.send(conv, "next", "x")
	})
	bo.t = t
	if got := row[int](t, c.SuperURL(), "select count(*) from posthorn.events where kind = 'msg' and conv_id = '"+conv+"'"); got != 2 {
		t.Errorf("%d messages of bo's, want 2", got)
	}
	super(t, c, "delete from posthorn.events where conv_id = '"+conv+"'") // hush compares the crowd's
	crowd.hush(t, c.SuperURL())
	for i, k := range crowd.talkers {
		k.mu.Lock()
		if len(k.hellos) != 1 || k.lost > 0 || len(k.byes) > 0 {
			t.Errorf("u%d: %d hellos, %d times not online, goodbyes %v", i, len(k.hellos), k.lost, k.byes)
		}
		for code := range k.errors {
			if code != posthorn.CodeUnavailable {
				t.Errorf("u%d was told %v", i, k.errors)
			}
		}
		k.mu.Unlock()
	}
	loud := strings.Count(n.logs.String(), "level=WARN") + strings.Count(n.logs.String(), "level=ERROR")
	if most := 3 * (int(time.Since(began).Seconds()) + 3); loud > most { // three causes, each a line a second
		t.Errorf("%d loud lines, want %d at most", loud, most)
	}
}

// refused counts the answers of one code.
func (c *crowd) refused(code posthorn.Code) (n int) {
	for _, k := range c.talkers {
		k.mu.Lock()
		n += k.errors[code]
		k.mu.Unlock()
	}
	return n
}

// retry sends until the database is back.
func retry(p *peer, f *wire.Send) *wire.Sent {
	p.t.Helper()
	var sent *wire.Sent
	poll(p.t, "the send to be taken", func() bool {
		r, err := p.Call(p.t.Context(), f)
		if err != nil && posthorn.AsError(err).Code != posthorn.CodeUnavailable {
			p.t.Fatal(err)
		}
		sent, _ = r.(*wire.Sent)
		return sent != nil
	})
	return sent
}

func super(t *testing.T, c *pgtest.Cluster, statements string) {
	t.Helper()
	var conn *pgx.Conn
	poll(t, "a place that is reserved for superusers", func() (ok bool) { // the one before may still be on its way out
		var err error
		conn, err = pgx.Connect(t.Context(), c.SuperURL())
		var full *pgconn.PgError
		if err != nil && !(errors.As(err, &full) && full.Code == "53300") {
			t.Fatal(err)
		}
		return err == nil
	})
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// drop ends all sessions but its own and those that have this name.
func drop(t *testing.T, c *pgtest.Cluster, but string) {
	t.Helper()
	super(t, c, fmt.Sprintf(`select pg_terminate_backend(pid) from pg_stat_activity
		where pid <> pg_backend_pid() and backend_type = 'client backend' and application_name <> '%s'`, but))
}

// occupy takes every connection that an ordinary role may have, those of the gateway too, until it is felt, and keeps them
// until leave.
func occupy(t *testing.T, c *pgtest.Cluster, felt func() bool) (leave func()) {
	t.Helper()
	cfg, err := pgx.ParseConfig(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["application_name"] = "stranger"
	var mine []*pgx.Conn
	leave = func() {
		for _, conn := range mine {
			_ = conn.Close(context.WithoutCancel(t.Context()))
		}
		mine = nil
	}
	t.Cleanup(leave)
	poll(t, "the stranger to be felt", func() bool {
		drop(t, c, "stranger") // whoever came in between
		for {
			conn, err := pgx.ConnectConfig(t.Context(), cfg)
			if err != nil {
				break
			}
			mine = append(mine, conn)
		}
		return felt()
	})
	return leave
}
