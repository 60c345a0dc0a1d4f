package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/posthorn/posthorn"
)

// problem is an RFC 9457 document.
type problem struct {
	Type    string         `json:"type" doc:"Always about:blank: code tells problems apart." example:"about:blank"`
	Title   string         `json:"title" doc:"The status in words."`
	Status  int            `json:"status" doc:"The HTTP status."`
	Detail  string         `json:"detail" doc:"What went wrong, for people."`
	Code    posthorn.Code  `json:"code" doc:"What went wrong, for programs; the same codes as on the socket."`
	RetryMS int64          `json:"retry_ms,omitzero" doc:"When to come back, in milliseconds; Retry-After says it in seconds."`
	Cmid    string         `json:"cmid,omitzero" doc:"The Idempotency-Key that the server made for a request without one: repeat the request with it."`
	Checks  []checkDetails `json:"conditions,omitzero" nullable:"false" doc:"GET /readyz: what holds and what does not."`
}

const problemType = "application/problem+json"

// statusError is an error whose status is not the one of its code.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// statusOf is the one place where codes become statuses. NOT_MEMBER is 404 like NOT_FOUND, whether the conversation is
// not there or not the caller's: nobody learns which exist.
func statusOf(c posthorn.Code) int {
	switch c {
	case posthorn.CodeBadFrame:
		return http.StatusBadRequest
	case posthorn.CodeUnauthenticated, posthorn.CodeStaleInstall, posthorn.CodeReplaced:
		return http.StatusUnauthorized
	case posthorn.CodeForbidden:
		return http.StatusForbidden
	case posthorn.CodeNotMember, posthorn.CodeNotFound:
		return http.StatusNotFound
	case posthorn.CodeCmidReused, posthorn.CodeCursorAhead:
		return http.StatusConflict
	case posthorn.CodeCmidTooOld:
		return http.StatusGone
	case posthorn.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case posthorn.CodeRateLimited:
		return http.StatusTooManyRequests
	case posthorn.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// problemOf shows what may be shown of an error.
func problemOf(err error) problem {
	e := posthorn.AsError(err)
	switch {
	case errors.Is(err, posthorn.ErrUnknown):
		e = &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: "the outcome is unknown: repeat the request with the same Idempotency-Key", Retry: e.Retry}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e = &posthorn.Error{Code: posthorn.CodeUnavailable, Msg: "not answered in time: repeat the request with the same Idempotency-Key, if it had one"}
	}
	p := problem{Type: "about:blank", Status: statusOf(e.Code), Detail: e.Msg, Code: e.Code, RetryMS: e.Retry.Milliseconds()}
	if wait := e.Code == posthorn.CodeUnavailable || e.Code == posthorn.CodeRateLimited; wait && p.RetryMS <= 0 {
		p.RetryMS = time.Second.Milliseconds()
	} else if !wait {
		p.RetryMS = 0
	}
	if p.Status == http.StatusInternalServerError {
		p.Code = posthorn.CodeInternal
	}
	var se *statusError
	if errors.As(err, &se) {
		p.Status = se.status
	}
	if p.Title = http.StatusText(p.Status); p.Detail == "" {
		p.Detail = p.Title
	}
	return p
}

// refuse answers with a problem. madeCmid is the Idempotency-Key that the server made: without it a retry would be a
// second message.
func (s *Server) refuse(w http.ResponseWriter, err error, madeCmid string) {
	p := problemOf(err)
	if p.Code.Class() == posthorn.Retry {
		p.Cmid = madeCmid
	}
	writeProblem(w, p)
}

func writeProblem(w http.ResponseWriter, p problem) {
	h := w.Header()
	h.Set("Content-Type", problemType)
	if p.RetryMS > 0 {
		h.Set("Retry-After", strconv.FormatInt((p.RetryMS+999)/1000, 10))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	b, err := json.Marshal(p)
	if err != nil { // a sentence that is no valid UTF-8
		p.Detail = ""
		b, _ = json.Marshal(p)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(b) // the client may be gone
}
