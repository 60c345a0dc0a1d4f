package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/posthorn/posthorn/internal/store"
)

// shared is the cluster of this process's tests: from the environment, or started at the first need.
var shared struct {
	once    sync.Once
	err     error
	cluster *Cluster // nil where withpg keeps it
	super   string
	role    string
}

var databases atomic.Int64

// Main runs a package's tests, then what they want done at the end, stops the cluster that they started, and fails if a
// goroutine is left.
func Main(m *testing.M, atEnd ...func()) {
	code := m.Run()
	for _, f := range atEnd {
		f()
	}
	if shared.cluster != nil {
		if err := shared.cluster.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			code = max(code, 1)
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func start() error {
	shared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		shared.super, shared.role = os.Getenv(EnvSuper), os.Getenv(EnvRole)
		if shared.super == "" {
			if shared.cluster, shared.err = StartCluster(ctx, nil); shared.err != nil {
				return
			}
			shared.super, shared.role = shared.cluster.SuperURL(), shared.cluster.URL()
		}
		shared.err = template(ctx)
	})
	return shared.err
}

const templateName = "posthorn_template"

// template makes the migrated database that others are copied from, once per cluster.
func template(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, shared.super)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(7)"); err != nil {
		return err
	}
	if err := roles(ctx, conn); err != nil {
		return err
	}
	var there bool
	if err := conn.QueryRow(ctx, "select exists (select 1 from pg_database where datname = $1)", templateName).Scan(&there); err != nil || there {
		return err
	}
	building := templateName + "_building"
	if _, err := conn.Exec(ctx, "drop database if exists "+building); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "create database "+building+" owner posthorn"); err != nil {
		return err
	}
	if err := store.Migrate(ctx, At(shared.role, building), ""); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "alter database "+building+" rename to "+templateName)
	return err
}

// At names another database of the same cluster.
func At(raw, database string) string {
	u, err := url.Parse(raw)
	if err != nil {
		panic("pgtest: the cluster's URL cannot be read")
	}
	u.Path = "/" + database
	return u.String()
}

// URL gives the test a migrated database of its own, as the server's ordinary role sees it.
func URL(t testing.TB) string { return database(t, " template "+templateName) }

// EmptyURL gives the test a database without our schema.
func EmptyURL(t testing.TB) string { return database(t, "") }

// SuperURL reaches the database behind a URL as a superuser.
func SuperURL(t testing.TB, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return At(shared.super, u.Path[1:])
}

func database(t testing.TB, options string) string {
	t.Helper()
	if err := start(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	name := fmt.Sprintf("posthorn_t%d_%d", os.Getpid(), databases.Add(1))
	admin(t, "create database "+name+options+" owner posthorn")
	t.Cleanup(func() { admin(t, "drop database "+name+" with (force)") })
	return At(shared.role, name)
}

func admin(t testing.TB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, shared.super)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("pgtest: %s: %v", statement, err)
	}
}

// Exec runs statements on a test's database as a superuser.
func Exec(t testing.TB, url, statement string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, SuperURL(t, url))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Query reads one row of a test's database as a superuser.
func Query[T any](t testing.TB, url, query string, args ...any) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, SuperURL(t, url))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var v T
	if err := conn.QueryRow(ctx, query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}
