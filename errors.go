package posthorn

import (
	"errors"
	"fmt"
	"time"
)

// Code is an error code of the wire protocol. Its class decides what a client's outbox does with the item.
type Code string

const (
	CodeBadFrame        Code = "BAD_FRAME"
	CodeForbidden       Code = "FORBIDDEN"
	CodeNotMember       Code = "NOT_MEMBER"
	CodeNotFound        Code = "NOT_FOUND"
	CodeCmidReused      Code = "CMID_REUSED"
	CodeCmidTooOld      Code = "CMID_TOO_OLD"
	CodeTooLarge        Code = "TOO_LARGE"
	CodeUnauthenticated Code = "UNAUTHENTICATED"
	CodeStaleInstall    Code = "STALE_INSTALL"
	CodeReplaced        Code = "REPLACED"
	CodeCursorAhead     Code = "CURSOR_AHEAD"
	CodeRateLimited     Code = "RATE_LIMITED"
	CodeUnavailable     Code = "UNAVAILABLE"
	CodeInternal        Code = "INTERNAL"

	// These three appear in bye frames only.
	CodeSlowConsumer Code = "SLOW_CONSUMER"
	CodeShuttingDown Code = "SHUTTING_DOWN"
	CodeNewEpoch     Code = "NEW_EPOCH"
)

// Class is the answer to "may I retry?".
type Class int

const (
	ItemTerminal    Class = iota + 1 // the item fails and is shown; others go on
	SessionTerminal                  // the item stays; the session must be renewed first
	Resync                           // the conversation is synced anew
	Retry                            // the same cmid again; order within a conversation is kept
)

// Class of the code; an unknown code is retried, since losing an item is worse than asking twice.
func (c Code) Class() Class {
	switch c {
	case CodeBadFrame, CodeForbidden, CodeNotMember, CodeNotFound, CodeCmidReused, CodeCmidTooOld, CodeTooLarge:
		return ItemTerminal
	case CodeUnauthenticated, CodeStaleInstall, CodeReplaced:
		return SessionTerminal
	case CodeCursorAhead:
		return Resync
	default:
		return Retry
	}
}

// ByeStatus is the WebSocket close status that goes with a bye frame, or 0 for codes that end no connection.
func (c Code) ByeStatus() int {
	for i, b := range []Code{CodeReplaced, CodeSlowConsumer, CodeShuttingDown, CodeStaleInstall, CodeUnauthenticated, CodeNewEpoch} {
		if b == c {
			return 4001 + i
		}
	}
	return 0
}

// Error carries a code for machines and a sentence for people. Err is for the log and never crosses the border.
type Error struct {
	Code  Code
	Msg   string
	Retry time.Duration // RATE_LIMITED, UNAVAILABLE: when to come back
	Err   error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Msg, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Msg)
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error with a code and a sentence.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// ErrUnknown is the outcome of a send whose COMMIT was not answered, or was answered while waiting for a standby was
// cancelled. Nothing is told to a socket; the client's resend finds out (D1).
var ErrUnknown = errors.New("outcome unknown")

// AsError gives the Error that may be shown: anything unknown becomes INTERNAL, without its text.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, ErrUnknown) {
		return &Error{Code: CodeUnavailable, Msg: "the outcome is unknown: send again with the same cmid", Retry: time.Second, Err: err}
	}
	return &Error{Code: CodeInternal, Msg: "internal error", Err: err}
}
