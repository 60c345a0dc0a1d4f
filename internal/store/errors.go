package store

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthorn/posthorn"
)

const (
	lockNotAvailable = "55P03"
	queryCanceled    = "57014"
	unsteadyCode     = "PH503" // the function space
)

func unavailable(msg string, err error) *posthorn.Error {
	return &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: msg, Retry: time.Second, Err: err}
}

// readError classifies the error of a read or of a statement that may simply be tried again.
func readError(err error) error {
	var known *posthorn.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return unavailable("the database does not answer", err)
	}
	switch {
	case pg.Code[:2] == "22":
		return &posthorn.Error{Code: posthorn.CodeBadFrame, Msg: "the database refuses a value of this request", Err: err}
	case pg.Code == unsteadyCode:
		return unavailable("the history of the database is being compared", err)
	case away(pg), retryable(pg):
		return unavailable("the database is busy or away", err)
	}
	return &posthorn.Error{Code: posthorn.CodeInternal, Msg: "internal error", Err: err}
}

// away: connections, shutdown, recovery, read-only, out of something.
func away(pg *pgconn.PgError) bool {
	switch pg.Code[:2] {
	case "08", "53", "57", "58":
		return true
	}
	return pg.Code == "25006"
}

// unsteady: the database is in another life than the guard says.
func unsteady(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == unsteadyCode
}

// retryable: the same statement may well pass the next time.
func retryable(pg *pgconn.PgError) bool {
	switch pg.Code {
	case "40001", "40P01", lockNotAvailable:
		return true
	}
	return false
}

// dataError: one member of the batch is at fault, its neighbours are not.
func dataError(pg *pgconn.PgError) bool {
	return pg.Code[:2] == "22" || pg.Code[:2] == "23"
}
