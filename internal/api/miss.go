package api

import (
	"net/http"
	"strings"

	"github.com/posthorn/posthorn"
)

// dispatch gives the request to its call. What there is no call for gets a problem document instead of the mux's text,
// and no redirect: a client that asks for an unclean path has a bug, and a redirected POST loses its body.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	if unclean(r.URL.EscapedPath()) {
		s.refuse(w, noSuchCall(), "")
		return
	}
	h, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	// The mux knows whether another method would have been right.
	ask := &recorder{header: http.Header{}}
	h.ServeHTTP(ask, r)
	if ask.status != http.StatusMethodNotAllowed {
		s.refuse(w, noSuchCall(), "")
		return
	}
	w.Header()["Allow"] = ask.header.Values("Allow")
	s.refuse(w, &statusError{http.StatusMethodNotAllowed, posthorn.Errorf(posthorn.CodeNotFound, "this call has other methods, see Allow")}, "")
}

func noSuchCall() error { return posthorn.Errorf(posthorn.CodeNotFound, "there is no such call") }

func unclean(path string) bool {
	return strings.Contains(path, "//") || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../")
}

// recorder keeps what the mux would have said.
type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }
