package api

import (
	"net/http"
	"strings"

	"github.com/posthorn/posthorn"
)

// checkDetails is one condition of GET /readyz.
type checkDetails struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Why  string `json:"why,omitzero"`
}

type readyAnswer struct {
	Ready  bool           `json:"ready"`
	Checks []checkDetails `json:"conditions" nullable:"false"`
}

type liveAnswer struct {
	OK bool `json:"ok"`
}

// health binds the calls of supervisors and load balancers, which carry no credential and stand outside /api/v1.
func (s *Server) health() {
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := answerWith(w, liveAnswer{OK: true}); err != nil {
			s.fail(w, r, nil, err)
		}
	})
	s.mux.HandleFunc("GET /readyz", s.ready)
	s.documentHealth("/healthz", "health", "The process lives", liveAnswer{})
	s.documentHealth("/readyz", "ready", "The process can serve", readyAnswer{})
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	var missing []string
	checks := []checkDetails{}
	for _, c := range s.cfg.Ready.Conditions() {
		checks = append(checks, checkDetails(c))
		if !c.OK {
			missing = append(missing, c.Name)
		}
	}
	if len(missing) == 0 {
		if err := answerWith(w, readyAnswer{Ready: true, Checks: checks}); err != nil {
			s.fail(w, r, nil, err)
		}
		return
	}
	p := problemOf(posthorn.Errorf(posthorn.CodeUnavailable, "not ready: %s", strings.Join(missing, ", ")))
	p.Checks = checks
	writeProblem(w, p)
}
