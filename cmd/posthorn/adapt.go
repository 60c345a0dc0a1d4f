package main

import (
	"context"
	"os"

	"github.com/posthorn/posthorn/internal/api"
	"github.com/posthorn/posthorn/internal/identity"
	"github.com/posthorn/posthorn/internal/store/directory"
)

// The rooms do not know each other; these few types join their ports.

// tokenStore lets identity keep its rows in the directory.
type tokenStore struct{ *directory.Directory }

func (t tokenStore) TokenByHash(ctx context.Context, hash [32]byte) (identity.TokenRow, error) {
	r, err := t.Directory.TokenByHash(ctx, hash)
	return identity.TokenRow(r), err
}

func (t tokenStore) InsertToken(ctx context.Context, hash [32]byte, r identity.TokenRow) error {
	return t.Directory.InsertToken(ctx, hash, directory.TokenRow(r))
}

func (t tokenStore) KeyByHash(ctx context.Context, hash [32]byte) (identity.KeyRow, error) {
	r, err := t.Directory.KeyByHash(ctx, hash)
	return identity.KeyRow(r), err
}

func (t tokenStore) InsertKey(ctx context.Context, hash [32]byte, r identity.KeyRow) (string, error) {
	return t.Directory.InsertKey(ctx, hash, directory.KeyRow(r))
}

func (t tokenStore) ListKeys(ctx context.Context, after string, limit int) (list []identity.KeyRow, next string, err error) {
	rows, next, err := t.Directory.ListKeys(ctx, after, limit)
	for _, r := range rows {
		list = append(list, identity.KeyRow(r))
	}
	return list, next, err
}

// authenticator takes what the flags allow.
func (s *server) authenticator(c *serveCmd, dir *directory.Directory) (*identity.Authenticator, error) {
	jwt := identity.JWTConfig{Issuer: c.JwtIssuer, Audience: c.JwtAudience}
	if c.JwtSecret != "" {
		jwt.HS256 = []byte(c.JwtSecret)
	}
	if c.JwtPublicKey != "" {
		text, err := os.ReadFile(c.JwtPublicKey)
		if err != nil {
			return nil, err
		}
		if jwt.EdDSA, err = identity.ParseEdDSA(text); err != nil {
			return nil, err
		}
	}
	if c.JwtJwks != "" {
		var err error
		if s.jwks, err = identity.NewJWKS(identity.JWKSConfig{Source: c.JwtJwks}); err != nil {
			return nil, err
		}
		jwt.JWKS = s.jwks
	}
	if c.AdminKey != "" && identity.WeakAdminKey(c.AdminKey) {
		s.log.Warn("POSTHORN_ADMIN_KEY is shorter than 32 bytes and may be guessed")
	}
	return identity.New(identity.Config{Store: tokenStore{dir}, AdminKey: c.AdminKey, JWT: jwt})
}

// deviceAuth is what the gateway asks.
type deviceAuth struct{ *identity.Authenticator }

func (a deviceAuth) Device(ctx context.Context, token string) (user, device string, install *int64, err error) {
	d, err := a.Authenticator.Device(ctx, token)
	return d.User, d.Device, d.Install, err
}

// bearer is what the HTTP calls ask.
type bearer struct{ *identity.Authenticator }

func (b bearer) Bearer(ctx context.Context, header string) (api.Caller, error) {
	c, err := b.Authenticator.Bearer(ctx, header)
	return api.Caller{Key: c.Key, Scopes: c.Scopes, User: c.User, Device: c.Device}, err
}

// users is the directory of people for the HTTP calls.
type users struct{ *directory.Directory }

func (u users) PutUser(ctx context.Context, x api.User) (api.User, error) {
	r, err := u.Directory.PutUser(ctx, x.User, x.Name, x.Avatar)
	return api.User{User: r.User, Name: &r.Name, Avatar: &r.Avatar}, err
}

func (u users) ListUsers(ctx context.Context, after string, limit int) (list []api.User, next string, err error) {
	rows, next, err := u.Directory.ListUsers(ctx, after, limit)
	for _, r := range rows {
		list = append(list, api.User{User: r.User, Name: &r.Name, Avatar: &r.Avatar})
	}
	return list, next, err
}

// told is the same, and has every gateway look at once when a device is revoked.
type told struct {
	users
	rings func(what string)
}

func (d told) RevokeDevice(ctx context.Context, user, device string) error {
	err := d.users.RevokeDevice(ctx, user, device)
	if err == nil {
		d.rings("revoked")
	}
	return err
}

// keyring makes tokens and keys for the HTTP calls.
type keyring struct{ *identity.Issuer }

func (k keyring) IssueToken(ctx context.Context, r api.TokenRequest) (api.Token, error) {
	t, err := k.Issuer.IssueToken(ctx, identity.TokenRequest(r))
	return api.Token(t), err
}

func (k keyring) CreateKey(ctx context.Context, name string, scopes []api.Scope) (api.Key, string, error) {
	r, text, err := k.Issuer.CreateKey(ctx, name, scopes)
	return api.Key(r), text, err
}

func (k keyring) ListKeys(ctx context.Context, after string, limit int) (list []api.Key, next string, err error) {
	rows, next, err := k.Issuer.ListKeys(ctx, after, limit)
	for _, r := range rows {
		list = append(list, api.Key(r))
	}
	return list, next, err
}
