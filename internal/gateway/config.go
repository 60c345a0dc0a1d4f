package gateway

import (
	"context"
	"log/slog"

	"github.com/posthorn/posthorn"
)

// Hub is what the gateway asks of the fan-out.
type Hub interface {
	// Register makes a socket known after its welcome; from here on the hub may close it.
	Register(s posthorn.Socket)
	// Unregister forgets it.
	Unregister(s posthorn.Socket)
	// Subscribe loads what the socket's device may see and begins to buffer; pushes flow once activate is called.
	Subscribe(ctx context.Context, s posthorn.Socket) (activate func(), err error)
	// MayType tells whether a user may show now that they are writing.
	MayType(s posthorn.Socket, conv string) bool
	// Heard notes an ack as received, before it is flushed.
	Heard(s posthorn.Socket, conv string, seq int64)
}

// Authenticator tells whose a token is. A token that is no good gives an error with code UNAUTHENTICATED; any other
// error lets the client try again. device is "" where the token names none, install is nil likewise.
type Authenticator interface {
	Device(ctx context.Context, token string) (user, device string, install *int64, err error)
}

// Config of a Gateway. Log, Hub and Auth are required.
type Config struct {
	Log  posthorn.Log
	Hub  Hub
	Auth Authenticator

	// Limits in force; the zero value means posthorn.DefaultLimits.
	Limits posthorn.Limits
	// GatewayID is told in welcome.
	GatewayID string
	// AllowedOrigins lists the pages that may connect besides those of the same origin; see originAllowed for the rule.
	AllowedOrigins []string
	// Compression offers permessage-deflate without context takeover. Default: off.
	Compression bool
	// MaxHellos bounds the logins that are with the database at a time; more of them wait. Default: 256.
	MaxHellos int
	// Logger gets refused origins and INTERNAL errors, at most ten a second. Default: discarded.
	Logger *slog.Logger
}
