package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"strings"
	"time"

	"github.com/posthorn/posthorn"
)

// Config of an Authenticator.
type Config struct {
	// Store of tokens and keys; required.
	Store Store
	// AdminKey is the first admin key, from POSTHORN_ADMIN_KEY; "": there is none. Visible ASCII without spaces.
	AdminKey string
	// JWT sources; the zero value accepts no JWT.
	JWT JWTConfig
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Authenticator judges credentials. It is safe for use by many goroutines and keeps nothing between calls.
type Authenticator struct {
	store    Store
	admin    [32]byte // SHA-256 of the admin key
	hasAdmin bool
	jwt      *verifier // nil: no JWTs
	now      func() time.Time
}

// Device is whom a device token or JWT speaks for.
type Device struct {
	User    string
	Device  string
	Install *int64 // the default for a hello that names none
}

// Caller is whom an Authorization header speaks for: a server key (Key is set) or a device (User and Device are).
type Caller struct {
	Key    string // the key's id, never its text
	Scopes []Scope
	User   string
	Device string
}

// adminID names the key from POSTHORN_ADMIN_KEY where a key is named by its id.
const adminID = "POSTHORN_ADMIN_KEY"

// New makes an Authenticator.
func New(cfg Config) (*Authenticator, error) {
	a := &Authenticator{store: cfg.Store, now: cfg.Now}
	if a.store == nil {
		return nil, errors.New("identity: no store")
	}
	if a.now == nil {
		a.now = time.Now
	}
	if cfg.AdminKey != "" {
		if !visible(cfg.AdminKey) || len(cfg.AdminKey) > maxToken {
			return nil, errors.New("POSTHORN_ADMIN_KEY must be visible ASCII without spaces, at most 8192 bytes")
		}
		a.admin, a.hasAdmin = sha256.Sum256([]byte(cfg.AdminKey)), true
	}
	var err error
	a.jwt, err = newVerifier(cfg.JWT, a.now)
	return a, err
}

// Device judges the token of a hello. A server key opens no socket.
func (a *Authenticator) Device(ctx context.Context, token string) (Device, error) {
	switch {
	case token == "" || len(token) > maxToken || !visible(token):
		return Device{}, refused("the token is not valid")
	case strings.HasPrefix(token, tokenPrefix):
		return a.token(ctx, token)
	case strings.HasPrefix(token, keyPrefix) || a.isAdmin(token):
		return Device{}, refused("a server key is no device token")
	case a.jwt != nil && strings.Count(token, ".") == 2:
		return a.jsonWebToken(ctx, token)
	}
	return Device{}, refused("the token is not valid")
}

func (a *Authenticator) token(ctx context.Context, token string) (Device, error) {
	row, err := a.store.TokenByHash(ctx, sha256.Sum256([]byte(token)))
	switch {
	case err != nil:
		return Device{}, lookup(err, "the token is not valid")
	case row.Revoked:
		return Device{}, refused("the token has been revoked")
	case row.ExpiresAt != nil && !a.now().Before(*row.ExpiresAt):
		return Device{}, refused("the token has expired")
	}
	return Device{User: row.User, Device: row.Device, Install: row.Install}, nil
}

func (a *Authenticator) jsonWebToken(ctx context.Context, token string) (Device, error) {
	d, err := a.jwt.verify(ctx, token)
	if err != nil {
		return Device{}, err
	}
	switch revoked, err := a.store.DeviceRevoked(ctx, d.User, d.Device); {
	case err != nil:
		return Device{}, lookup(err, "the device is not known")
	case revoked:
		return Device{}, refused("the device has been revoked")
	}
	return d, nil
}

func (a *Authenticator) key(ctx context.Context, token string) (Caller, error) {
	row, err := a.store.KeyByHash(ctx, sha256.Sum256([]byte(token)))
	switch {
	case err != nil:
		return Caller{}, lookup(err, "the key is not valid")
	case row.Revoked:
		return Caller{}, refused("the key has been revoked")
	case row.ID == "":
		return Caller{}, posthorn.Errorf(posthorn.CodeInternal, "a key without an id")
	}
	return Caller{Key: row.ID, Scopes: row.Scopes}, nil
}

// isAdmin compares hashes, so that neither the key's text nor its length shows in the time it takes.
func (a *Authenticator) isAdmin(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], a.admin[:]) == 1 && a.hasAdmin
}
