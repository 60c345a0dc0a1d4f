package identity

import (
	"errors"
	"time"

	"github.com/posthorn/posthorn"
)

// refused makes an UNAUTHENTICATED. The text is fixed at each place of use, so that no part of a credential gets into it;
// for the same reason errors of the JWT library, which quote what they could not read, are never wrapped.
func refused(text string) error {
	return &posthorn.Error{Code: posthorn.CodeUnauthenticated, Msg: text}
}

// unchecked makes an UNAVAILABLE: nobody knows yet whether the credential is good.
func unchecked(text string, retry time.Duration, cause error) error {
	return &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: text, Retry: retry, Err: cause}
}

// lookup turns what the store said about a hash into a refusal or into trouble.
func lookup(err error, absent string) error {
	if err == nil {
		return nil
	}
	var e *posthorn.Error
	switch {
	case isNotFound(err):
		return refused(absent)
	case errors.As(err, &e) && e.Code == posthorn.CodeUnavailable:
		return err
	}
	return unchecked("credentials cannot be checked just now", time.Second, err)
}

// stored passes on what the store decided, and hides its trouble behind UNAVAILABLE.
func stored(err error) error {
	var e *posthorn.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return unchecked("the database does not answer", time.Second, err)
}

func isNotFound(err error) bool {
	var e *posthorn.Error
	return errors.As(err, &e) && e.Code == posthorn.CodeNotFound
}
