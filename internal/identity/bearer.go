package identity

import (
	"context"
	"strings"
)

// maxToken bounds what is hashed and parsed for somebody who has not been identified yet.
const maxToken = 8 << 10

// Bearer judges the value of an Authorization header.
func (a *Authenticator) Bearer(ctx context.Context, header string) (Caller, error) {
	token, err := parseBearer(header)
	if err != nil {
		return Caller{}, err
	}
	// The admin key first: it may have any shape, a device token's too.
	if a.isAdmin(token) {
		return Caller{Key: adminID, Scopes: []Scope{ScopeRead, ScopeWrite, ScopeAdmin}}, nil
	}
	if strings.HasPrefix(token, keyPrefix) {
		return a.key(ctx, token)
	}
	d, err := a.Device(ctx, token)
	if err != nil {
		return Caller{}, err
	}
	return Caller{User: d.User, Device: d.Device}, nil
}

// parseBearer takes `Bearer`, in any case (RFC 9110), spaces, and one token of visible ASCII.
func parseBearer(header string) (string, error) {
	if header == "" {
		return "", refused("an Authorization header with a Bearer token is required")
	}
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", refused("the Authorization header must be of the form: Bearer token")
	}
	token = strings.TrimLeft(token, " ")
	if token == "" || len(token) > maxToken || !visible(token) {
		return "", refused("the Authorization header must be of the form: Bearer token")
	}
	return token, nil
}

// visible tells whether s is visible ASCII without spaces.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
