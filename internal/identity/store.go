package identity

import (
	"context"
	"slices"
	"time"

	"github.com/posthorn/posthorn"
)

// Scope is what a server key may do. Admin includes the others; write does not include read.
type Scope = string

const (
	ScopeRead  Scope = "read"
	ScopeWrite Scope = "write"
	ScopeAdmin Scope = "admin"
)

// CheckScopes refuses unknown, repeated and absent scopes with BAD_FRAME.
func CheckScopes(scopes []Scope) error {
	if len(scopes) == 0 {
		return posthorn.Errorf(posthorn.CodeBadFrame, "scopes must not be empty")
	}
	for i, s := range scopes {
		if s != ScopeRead && s != ScopeWrite && s != ScopeAdmin {
			return posthorn.Errorf(posthorn.CodeBadFrame, "a scope is read, write or admin")
		}
		if slices.Contains(scopes[:i], s) {
			return posthorn.Errorf(posthorn.CodeBadFrame, "scope %s is repeated", s)
		}
	}
	return nil
}

// TokenRow is a device token as it is stored, beside its hash.
type TokenRow struct {
	User      string
	Device    string
	Install   *int64     // the default for a hello that names none; nil: none
	ExpiresAt *time.Time // nil: never
	Revoked   bool       // the token, or its device since the token was made
}

// KeyRow is a server key as it is stored, beside its hash.
type KeyRow struct {
	ID      string
	Name    string
	Scopes  []Scope
	Revoked bool
}

// Store keeps tokens and keys by the SHA-256 of their text. What is not there is a *posthorn.Error with NOT_FOUND; any
// other error counts as trouble and becomes UNAVAILABLE.
type Store interface {
	TokenByHash(ctx context.Context, hash [32]byte) (TokenRow, error)
	KeyByHash(ctx context.Context, hash [32]byte) (KeyRow, error)
	// DeviceRevoked is asked for JWTs, which have no row. A device that has never been seen is not revoked.
	DeviceRevoked(ctx context.Context, user, device string) (bool, error)

	// InsertToken makes the device where it is new, and lets a revoked one begin again; tokens made before its revocation
	// stay revoked. An unknown user is NOT_FOUND.
	InsertToken(ctx context.Context, hash [32]byte, row TokenRow) error
	// InsertKey names the key: row.ID is empty, the answer is what RevokeKey and ListKeys call it.
	InsertKey(ctx context.Context, hash [32]byte, row KeyRow) (id string, err error)
	// ListKeys pages all keys, revoked ones too; after is the next of the page before, next is "" at the end.
	ListKeys(ctx context.Context, after string, limit int) (keys []KeyRow, next string, err error)
	// RevokeKey is legal twice; an unknown id is NOT_FOUND.
	RevokeKey(ctx context.Context, id string) error
}
