package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/tern/v2/migrate"

	"github.com/posthorn/posthorn"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the key of the advisory lock under which schemas are changed; the libraries take the same one.
const migrationLock = 0x706f7374686f726e // "posthorn"

// Migrate brings the schema up to date. Any number of processes may call it at once, on an empty database too: the lock is
// taken before the first DDL. A schema that is newer than this program is refused. Session locks do not pass a
// transaction pooler, so where something is left to migrate the URL must lead to the server itself.
func Migrate(ctx context.Context, url, schema string) error {
	if schema == "" {
		schema = "posthorn"
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return errors.New("the database URL cannot be read")
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // keeps nothing prepared, so that it passes a pooler
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer func() {
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = conn.Close(cctx) // gives back the lock, whatever happened
	}()
	if done, err := migrated(ctx, conn, schema); err != nil || done {
		return err
	}
	if pooled, err := behindPooler(ctx, conn); err != nil || pooled {
		return errors.Join(err, errors.New("the database URL leads through a connection pooler, and the schema is not up to date: run `posthorn migrate` once with a URL of the server itself"))
	}
	if _, err := conn.Exec(ctx, lockSQL, int64(migrationLock)); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := conn.Exec(ctx, "create schema if not exists "+pgx.Identifier{schema}.Sanitize()); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	m, err := migrate.NewMigrator(ctx, conn, pgx.Identifier{schema, "schema_version"}.Sanitize())
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := load(m, schema); err != nil {
		return err
	}
	have, err := m.GetCurrentVersion(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("migrate: %w", err)
	case have > int32(len(m.Migrations)):
		return fmt.Errorf("the schema %q has version %d, this program knows %d: use a newer program", schema, have, len(m.Migrations))
	}
	if err := m.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return putRules(ctx, conn, schema)
}

// migrated tells whether there is nothing to do: no lock is needed to see that.
func migrated(ctx context.Context, conn *pgx.Conn, schema string) (bool, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return false, err
	}
	kinds, acts, roles := ruleColumns()
	var version int
	var same bool
	err = conn.QueryRow(ctx, InSchema(migratedSQL, schema), kinds, acts, roles).Scan(&version, &same)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000") {
		return false, nil // no such table or schema yet
	}
	if err != nil {
		return false, fmt.Errorf("migrate: %w", err)
	}
	return version == len(names) && same, nil
}

// load reads the numbered files; a gap in their numbers is a mistake of the build.
func load(m *migrate.Migrator, schema string) error {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	sort.Strings(names)
	for i, name := range names {
		var n int
		if _, err := fmt.Sscanf(name, "migrations/%03d_", &n); err != nil || n != i+1 {
			return fmt.Errorf("migration %s is not number %d", name, i+1)
		}
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		m.AppendMigration(name, InSchema(string(text), schema), "")
	}
	return nil
}

// putRules writes the authorisation table of the code into the database, where SQL judges by it.
func putRules(ctx context.Context, conn *pgx.Conn, schema string) error {
	kinds, acts, roles := ruleColumns()
	_, err := conn.Exec(ctx, InSchema(putRulesSQL, schema), kinds, acts, roles)
	return err
}

func ruleColumns() (kinds, acts, roles []string) {
	for _, r := range posthorn.Rules() {
		for _, role := range r.Roles {
			kinds, acts, roles = append(kinds, string(r.Kind)), append(acts, string(r.Act)), append(roles, string(role))
		}
	}
	return kinds, acts, roles
}
