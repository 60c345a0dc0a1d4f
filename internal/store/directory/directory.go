// Package directory keeps users, devices, tokens and server keys: everything about identity that is not on the hot path.
//
// It starts no goroutine and owns nothing: it runs its statements on the store's pool. Its row types have the fields of
// internal/identity's, which it may not import; cmd converts. It imports the root and pgx.
package directory

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthorn/posthorn"
)

// DB is what the package needs of a pool.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Directory runs on one schema of one database.
type Directory struct {
	db  DB
	sql func(string) string // puts the configured schema into a statement
}

// New makes a Directory; sql puts the schema into a statement.
func New(db DB, sql func(string) string) *Directory { return &Directory{db: db, sql: sql} }

// User is a person as the application named them.
type User struct {
	User, Name, Avatar string
	CreatedAt          time.Time
}

// TokenRow is a device token as it is stored, beside its hash.
type TokenRow struct {
	User      string
	Device    string
	Install   *int64
	ExpiresAt *time.Time
	Revoked   bool
}

// KeyRow is a server key as it is stored, beside its hash.
type KeyRow struct {
	ID      string
	Name    string
	Scopes  []string
	Revoked bool
}

func notFound(what string) error { return posthorn.Errorf(posthorn.CodeNotFound, "no such %s", what) }

// trouble hides what the database says; it stays in Err for the log.
func trouble(err error) error {
	var known *posthorn.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code[:2] == "22" {
		return &posthorn.Error{Code: posthorn.CodeBadFrame, Msg: "the database refuses a value of this request", Err: err}
	}
	return &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: "the database is busy or away", Retry: time.Second, Err: err}
}

// PutUser makes a user or changes name and avatar; nil leaves a value as it is.
func (d *Directory) PutUser(ctx context.Context, user string, name, avatar *string) (User, error) {
	u := User{User: user}
	err := d.db.QueryRow(ctx, d.sql(putUserSQL), user, name, avatar).Scan(&u.Name, &u.Avatar, &u.CreatedAt)
	return u, trouble(err)
}

// ListUsers pages users by id.
func (d *Directory) ListUsers(ctx context.Context, after string, limit int) ([]User, string, error) {
	rows, err := d.db.Query(ctx, d.sql(listUsersSQL), after, limit+1)
	if err != nil {
		return nil, "", trouble(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[User])
	if err != nil || len(list) <= limit {
		return list, "", trouble(err)
	}
	return list[:limit], list[limit-1].User, nil
}

// TokenByHash finds a device token.
func (d *Directory) TokenByHash(ctx context.Context, hash [32]byte) (TokenRow, error) {
	var r TokenRow
	err := d.db.QueryRow(ctx, d.sql(tokenSQL), hash[:]).Scan(&r.User, &r.Device, &r.Install, &r.ExpiresAt, &r.Revoked)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, notFound("token")
	}
	return r, trouble(err)
}

// InsertToken makes the device where it is new and lets a revoked one begin again; older tokens of it stay revoked.
func (d *Directory) InsertToken(ctx context.Context, hash [32]byte, r TokenRow) error {
	var known bool
	err := d.db.QueryRow(ctx, d.sql(insertTokenSQL), hash[:], r.User, r.Device, r.Install, r.ExpiresAt).Scan(&known)
	if err == nil && !known {
		return notFound("user")
	}
	return trouble(err)
}

// DeviceRevoked tells it of a device; one that was never seen is not revoked.
func (d *Directory) DeviceRevoked(ctx context.Context, user, device string) (revoked bool, err error) {
	err = d.db.QueryRow(ctx, d.sql(deviceRevokedSQL), user, device).Scan(&revoked)
	return revoked, trouble(err)
}

// RevokeDevice ends a device's tokens; a signal closes its socket on every gateway. Legal twice.
func (d *Directory) RevokeDevice(ctx context.Context, user, device string) error {
	var id int64
	err := d.db.QueryRow(ctx, d.sql(revokeDeviceSQL), user, device).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return notFound("device")
	}
	return trouble(err)
}

// KeyByHash finds a server key.
func (d *Directory) KeyByHash(ctx context.Context, hash [32]byte) (KeyRow, error) {
	var r KeyRow
	err := d.db.QueryRow(ctx, d.sql(keySQL), hash[:]).Scan(&r.ID, &r.Name, &r.Scopes, &r.Revoked)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, notFound("key")
	}
	return r, trouble(err)
}

// InsertKey stores a server key and names it.
func (d *Directory) InsertKey(ctx context.Context, hash [32]byte, r KeyRow) (id string, err error) {
	err = d.db.QueryRow(ctx, d.sql(insertKeySQL), hash[:], r.Name, r.Scopes).Scan(&id)
	return id, trouble(err)
}

// ListKeys pages all keys, revoked ones too.
func (d *Directory) ListKeys(ctx context.Context, after string, limit int) ([]KeyRow, string, error) {
	from := int64(0)
	if after != "" {
		n, err := strconv.ParseInt(after, 10, 64)
		if err != nil {
			return nil, "", posthorn.Errorf(posthorn.CodeBadFrame, "after is no key id")
		}
		from = n
	}
	rows, err := d.db.Query(ctx, d.sql(listKeysSQL), from, limit+1)
	if err != nil {
		return nil, "", trouble(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[KeyRow])
	if err != nil || len(list) <= limit {
		return list, "", trouble(err)
	}
	return list[:limit], list[limit-1].ID, nil
}

// RevokeKey ends a key; legal twice.
func (d *Directory) RevokeKey(ctx context.Context, id string) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != id { // "01" is no key's name
		return notFound("key")
	}
	tag, err := d.db.Exec(ctx, d.sql(revokeKeySQL), n)
	if err == nil && tag.RowsAffected() == 0 {
		return notFound("key")
	}
	return trouble(err)
}

// Statements lists what the package sends, for the test that holds SQL to the schema.
func Statements() []string {
	return []string{putUserSQL, listUsersSQL, tokenSQL, insertTokenSQL, deviceRevokedSQL, revokeDeviceSQL, keySQL, insertKeySQL, listKeysSQL, revokeKeySQL}
}
