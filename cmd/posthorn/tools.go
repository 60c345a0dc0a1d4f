package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/identity"
	"github.com/posthorn/posthorn/internal/store"
	"github.com/posthorn/posthorn/internal/store/directory"
)

type migrateCmd struct{ databaseFlags }

func (c *migrateCmd) Run(ctx context.Context) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	return store.Migrate(ctx, url, c.Schema)
}

type adoptCmd struct{ databaseFlags }

// Run vouches for a move to another cluster, before any server runs on it.
func (c *adoptCmd) Run(ctx context.Context, out io.Writer) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	if err := store.Migrate(ctx, url, c.Schema); err != nil {
		return err
	}
	told, err := store.Adopt(ctx, url, c.Schema)
	switch {
	case err != nil:
		return fmt.Errorf("adopt: %w", err)
	case told == "":
		told = "nothing to adopt: this cluster and timeline are known already"
	}
	_, err = fmt.Fprintln(out, told)
	return err
}

// open is for tools that work on the database beside a running server.
func (d databaseFlags) open(ctx context.Context) (*directory.Directory, func(), error) {
	url, err := d.url()
	if err != nil {
		return nil, nil, err
	}
	if err := store.Migrate(ctx, url, d.Schema); err != nil {
		return nil, nil, err
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, nil, fmt.Errorf("the database URL cannot be read") // pgx's text may hold the password
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // passes a connection pooler
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	return directory.New(pool, func(q string) string { return store.InSchema(q, d.Schema) }), pool.Close, nil
}

type userCmd struct {
	Add userAddCmd `cmd:"" help:"Make a user or change their name."`
	Ls  userLsCmd  `cmd:"" help:"List users."`
}

type userAddCmd struct {
	databaseFlags
	User string  `arg:"" help:"The user's id."`
	Name *string `help:"The name that people see."`
}

func (c *userAddCmd) Run(ctx context.Context) error {
	if err := posthorn.CheckID("user", c.User, posthorn.DefaultLimits().IDBytes); err != nil {
		return err
	}
	dir, done, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = dir.PutUser(ctx, c.User, c.Name, nil)
	return err
}

type userLsCmd struct{ databaseFlags }

func (c *userLsCmd) Run(ctx context.Context, out io.Writer) error {
	dir, done, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	for after := ""; ; {
		rows, next, err := dir.ListUsers(ctx, after, 100)
		if err != nil {
			return err
		}
		for _, r := range rows {
			fmt.Fprintf(out, "%s\t%s\n", cleanLine(r.User), cleanLine(r.Name))
		}
		if after = next; next == "" {
			return nil
		}
	}
}

type tokenCmd struct {
	databaseFlags
	User   string        `required:"" help:"Whose device."`
	Device string        `help:"The device's name; one is made up without it."`
	TTL    time.Duration `name:"ttl" help:"How long the token is good." default:"720h"`
}

func (c *tokenCmd) Run(ctx context.Context, out io.Writer) error {
	dir, done, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	t, err := identity.NewIssuer(tokenStore{dir}, nil).IssueToken(ctx, identity.TokenRequest{User: c.User, Device: c.Device, TTL: c.TTL})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]any{"token": t.Token, "user": t.User, "device": t.Device, "expires_at": t.ExpiresAt})
}

type keyCmd struct {
	Add    keyAddCmd    `cmd:"" help:"Make a server key; its text is shown this once."`
	Ls     keyLsCmd     `cmd:"" help:"List server keys."`
	Revoke keyRevokeCmd `cmd:"" help:"End a server key."`
}

type keyAddCmd struct {
	databaseFlags
	Name   string   `arg:"" help:"What the key is for."`
	Scopes []string `help:"read, write, admin." default:"read,write"`
}

func (c *keyAddCmd) Run(ctx context.Context, out io.Writer) error {
	dir, done, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	row, text, err := identity.NewIssuer(tokenStore{dir}, nil).CreateKey(ctx, c.Name, c.Scopes)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]any{"id": row.ID, "name": row.Name, "scopes": row.Scopes, "key": text})
}

type keyLsCmd struct{ databaseFlags }

func (c *keyLsCmd) Run(ctx context.Context, out io.Writer) error {
	dir, done, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	for after := ""; ; {
		rows, next, err := dir.ListKeys(ctx, after, 100)
		if err != nil {
			return err
		}
		for _, r := range rows {
			fmt.Fprintf(out, "%s\t%s\t%v\trevoked=%v\n", r.ID, cleanLine(r.Name), r.Scopes, r.Revoked)
		}
		if after = next; next == "" {
			return nil
		}
	}
}

type keyRevokeCmd struct {
	databaseFlags
	ID string `arg:"" help:"The key's id, as ls shows it."`
}

func (c *keyRevokeCmd) Run(ctx context.Context) error {
	dir, done, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	return dir.RevokeKey(ctx, c.ID)
}

type versionCmd struct{}

func (versionCmd) Run(out io.Writer) error {
	_, err := fmt.Fprintln(out, "posthorn", version())
	return err
}

// version is what the build says of itself.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "dev"
}
