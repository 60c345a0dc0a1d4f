package identity

import (
	"context"
	"time"

	"github.com/posthorn/posthorn"
)

// Bounds on a device token's life.
const (
	DefaultTTL = 30 * 24 * time.Hour
	MaxTTL     = 365 * 24 * time.Hour
)

// Issuer makes tokens and keys. Their text leaves it once and is never stored.
type Issuer struct {
	store  Store
	now    func() time.Time
	limits posthorn.Limits
}

// NewIssuer makes an Issuer; now may be nil for time.Now.
func NewIssuer(store Store, now func() time.Time) *Issuer {
	if now == nil {
		now = time.Now
	}
	return &Issuer{store: store, now: now, limits: posthorn.DefaultLimits()}
}

// TokenRequest asks for a device token.
type TokenRequest struct {
	User    string
	Device  string        // "": the server makes one up
	Install *int64        // the default for a hello that names none
	TTL     time.Duration // 0: DefaultTTL; at most MaxTTL
}

// Token is a device token that was just made.
type Token struct {
	Token     string
	User      string
	Device    string
	ExpiresAt time.Time
}

// IssueToken makes a device token, and the device where it is new.
func (i *Issuer) IssueToken(ctx context.Context, r TokenRequest) (Token, error) {
	if r.Device == "" {
		r.Device = "dev_" + randomText(9)
	}
	if err := posthorn.CheckID("user", r.User, i.limits.IDBytes); err != nil {
		return Token{}, err
	}
	if err := posthorn.CheckID("device", r.Device, i.limits.IDBytes); err != nil {
		return Token{}, err
	}
	if r.Install != nil && (*r.Install < 0 || *r.Install > posthorn.MaxSeq) {
		return Token{}, posthorn.Errorf(posthorn.CodeBadFrame, "install is out of range")
	}
	switch {
	case r.TTL == 0:
		r.TTL = DefaultTTL
	case r.TTL < time.Second || r.TTL > MaxTTL:
		return Token{}, posthorn.Errorf(posthorn.CodeBadFrame, "a token lives between a second and %d days", int(MaxTTL.Hours()/24))
	}
	text, hash := newSecret(tokenPrefix)
	until := i.now().Add(r.TTL).Truncate(time.Millisecond)
	row := TokenRow{User: r.User, Device: r.Device, Install: r.Install, ExpiresAt: &until}
	if err := i.store.InsertToken(ctx, hash, row); err != nil {
		return Token{}, stored(err)
	}
	return Token{Token: text, User: r.User, Device: r.Device, ExpiresAt: until}, nil
}

// CreateKey makes a server key; text is the only copy of it.
func (i *Issuer) CreateKey(ctx context.Context, name string, scopes []Scope) (row KeyRow, text string, err error) {
	if err := posthorn.CheckID("name", name, i.limits.IDBytes); err != nil {
		return KeyRow{}, "", err
	}
	if err := CheckScopes(scopes); err != nil {
		return KeyRow{}, "", err
	}
	text, hash := newSecret(keyPrefix)
	row = KeyRow{Name: name, Scopes: scopes}
	if row.ID, err = i.store.InsertKey(ctx, hash, row); err != nil {
		return KeyRow{}, "", stored(err)
	}
	return row, text, nil
}

// ListKeys pages the keys without their text, which nobody has any more.
func (i *Issuer) ListKeys(ctx context.Context, after string, limit int) ([]KeyRow, string, error) {
	rows, next, err := i.store.ListKeys(ctx, after, limit)
	return rows, next, stored(err)
}

// RevokeKey ends a key from the next call on.
func (i *Issuer) RevokeKey(ctx context.Context, id string) error {
	return stored(i.store.RevokeKey(ctx, id))
}
