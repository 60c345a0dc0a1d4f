package api

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

// Caller is who makes a call: a server key (Key is its id) or a device (User and Device are set).
type Caller struct {
	Key    string
	Scopes []Scope
	User   string
	Device string
}

// Server tells whether the caller is a server key.
func (c Caller) Server() bool { return c.Key != "" }

func (c Caller) has(s Scope) bool {
	return slices.Contains(c.Scopes, s) || slices.Contains(c.Scopes, ScopeAdmin)
}

// Authenticator judges the value of an Authorization header. What is no good is UNAUTHENTICATED, trouble in judging it
// UNAVAILABLE; neither text holds the credential.
type Authenticator interface {
	Bearer(ctx context.Context, header string) (Caller, error)
}

// User is a person as POST /users writes and GET /users shows them.
type User struct {
	User   string
	Name   *string // nil when writing: unchanged
	Avatar *string // nil when writing: unchanged
}

// Directory keeps users and devices.
type Directory interface {
	// PutUser makes the user or changes what is not nil, and answers with the whole.
	PutUser(ctx context.Context, u User) (User, error)
	// ListUsers pages all users; after is the next of the page before, next is "" at the end.
	ListUsers(ctx context.Context, after string, limit int) (users []User, next string, err error)
	// RevokeDevice ends the device's tokens and its connections. Legal twice; an unknown device is NOT_FOUND.
	RevokeDevice(ctx context.Context, user, device string) error
}

// TokenRequest asks for a device token.
type TokenRequest struct {
	User    string
	Device  string        // "": the server makes one up
	Install *int64        // nil: none
	TTL     time.Duration // 0: the default
}

// Token is a device token; its text is shown this once.
type Token struct {
	Token     string
	User      string
	Device    string
	ExpiresAt time.Time
}

// Key is a server key without its text.
type Key struct {
	ID      string
	Name    string
	Scopes  []Scope
	Revoked bool
}

// Keyring makes tokens and keys. Bad names, scopes and lives are BAD_FRAME, unknown users and keys NOT_FOUND.
type Keyring interface {
	IssueToken(ctx context.Context, r TokenRequest) (Token, error)
	// CreateKey gives the key's text, which nobody can ask for again.
	CreateKey(ctx context.Context, name string, scopes []Scope) (k Key, text string, err error)
	// ListKeys pages all keys, revoked ones too.
	ListKeys(ctx context.Context, after string, limit int) (keys []Key, next string, err error)
	// RevokeKey is legal twice.
	RevokeKey(ctx context.Context, id string) error
}

// Entries shows one conversation as the viewer may see it; posthorn.Loader has it. One that is not there and one that the
// viewer was never in are both NOT_MEMBER.
type Entries interface {
	Entry(ctx context.Context, v posthorn.Viewer, conv string) (posthorn.Entry, error)
}

// Condition is one thing that must hold before the process can serve.
type Condition struct {
	Name string
	OK   bool
	Why  string // shown to anybody: no addresses, no credentials
}

// Readiness tells whether the process can serve. It must answer from memory: it is asked often, and by anybody.
type Readiness interface {
	Conditions() []Condition
}
