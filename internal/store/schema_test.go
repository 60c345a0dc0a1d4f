package store_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
	"github.com/posthorn/posthorn/internal/store/directory"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

func TestEveryStatementPrepares(t *testing.T) {
	c, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	all := append(store.Statements(), directory.Statements()...)
	for i, q := range all {
		if _, err := c.Prepare(t.Context(), fmt.Sprint("s", i), q); err != nil {
			t.Errorf("%.80q: %v", q, err)
		}
	}
	// A statement that is missing from the list would go unchecked.
	for _, file := range []string{"queries.go", "directory/queries.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		ast.Inspect(f, func(x ast.Node) bool {
			if v, ok := x.(*ast.ValueSpec); ok && strings.HasSuffix(v.Names[0].Name, "SQL") {
				n++
			}
			return true
		})
		want := len(store.Statements())
		if file != "queries.go" {
			want = len(directory.Statements())
		}
		if n != want {
			t.Errorf("%s has %d statements, %d are listed", file, n, want)
		}
	}
}

func TestMigrateEightAtOnceOnAnEmptyDatabase(t *testing.T) {
	url := pgtest.EmptyURL(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Add(1)
		go func() { defer wg.Done(); errs[i] = store.Migrate(t.Context(), url, "") }()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if n := pgtest.Query[int64](t, url, "select count(*) from posthorn.rules"); n == 0 {
		t.Error("the authorisation table is empty")
	}
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	url := pgtest.URL(t)
	pgtest.Exec(t, url, "update posthorn.schema_version set version = 999")
	err := store.Migrate(t.Context(), url, "")
	if err == nil || !strings.Contains(err.Error(), "newer program") {
		t.Fatalf("a newer schema: %v", err)
	}
}

// Another schema name, quoted where it must be, holds everything; nothing leaks into the default one.
func TestAnotherSchema(t *testing.T) {
	url := pgtest.EmptyURL(t)
	const name = "Chat-1"
	if err := store.Migrate(t.Context(), url, name); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, url, `insert into "Chat-1".users (user_id) values ('ana'), ('bo')`)
	s, l := open(t, url, func(c *store.Config) { c.Schema = name })
	conv := group(t, s, "ana", "bo")
	if o := do(t, s, msg(conv, "ana", "m1", "hello")); o.Err != nil || o.Seq != 2 {
		t.Fatalf("%+v", o)
	}
	l.awaitHead(t, conv, 2)
	pgtest.Exec(t, url, `select "Chat-1".send($1, 'bo', 'm2', 'from SQL', '{"a":1}')`, conv)
	l.awaitHead(t, conv, 3)
	if n := pgtest.Query[int64](t, url, `select count(*) from pg_namespace where nspname = 'posthorn'`); n != 0 {
		t.Error("the default schema exists")
	}
}

// The rules that SQL judges by are those of the code, also after somebody has changed them by hand.
func TestRulesComeFromTheCode(t *testing.T) {
	url := pgtest.URL(t)
	pgtest.Exec(t, url, "delete from posthorn.rules")
	pgtest.Exec(t, url, "insert into posthorn.rules values ('direct', 'send', 'stranger')")
	if err := store.Migrate(t.Context(), url, ""); err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, r := range posthorn.Rules() {
		want += len(r.Roles)
	}
	if n := pgtest.Query[int](t, url, "select count(*) from posthorn.rules"); n != want {
		t.Errorf("%d rules in the database, %d in the code", n, want)
	}
	if n := pgtest.Query[int](t, url, "select count(*) from posthorn.rules where role = 'stranger'"); n != 0 {
		t.Error("a rule that the code does not know stayed")
	}
}
