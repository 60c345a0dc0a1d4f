package api

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/posthorn/posthorn"
)

// written remembers the status that was sent.
type written struct {
	http.ResponseWriter
	status int
}

func (w *written) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *written) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *written) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// logged writes one line per call: method, the route's pattern, status and time taken. Never the path, the query, a
// header or a body, which may hold what is nobody's business, a credential above all (B75).
func (s *Server) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, out := time.Now(), &written{ResponseWriter: w}
		defer func() {
			s.log.Info("http", "method", methodName(r), "route", routeName(r), "status", out.status, "duration", time.Since(start))
		}()
		next.ServeHTTP(out, r)
	})
}

// methodName leaves out what a client made up.
func methodName(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}

// routeName is the pattern that the mux found, without its method. The mux writes it into the request that it was given,
// so the request must not be copied on the way there.
func routeName(r *http.Request) string {
	_, path, ok := strings.Cut(r.Pattern, " ")
	if !ok {
		return "none"
	}
	return path
}

// guarded sets the headers that every answer has, and turns a panic into INTERNAL.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		defer func() {
			switch p := recover(); {
			case p == nil:
			case p == http.ErrAbortHandler: //nolint:errorlint // the very value, as net/http compares it
				panic(p)
			default:
				s.log.Error("panic", "method", methodName(r), "route", routeName(r), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				if out, ok := w.(*written); ok && out.status != 0 {
					panic(http.ErrAbortHandler) // too late for another answer
				}
				s.refuse(w, posthorn.Errorf(posthorn.CodeInternal, "internal error"), "")
			}
		}()
		next.ServeHTTP(w, r)
	})
}
