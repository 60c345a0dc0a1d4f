package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-json-experiment/json"

	"github.com/posthorn/posthorn"
)

// route is what is to be known of a call before it is made: the OpenAPI document and admit both go by it.
type route struct {
	method, path string // below /api/v1
	id, summary  string
	more         string // the rest of the description
	scope        Scope  // what a server key needs; "": anybody may call, unasked who they are
	device       bool   // a device token may call it, for what its user may do
	query        []param
	keyed        bool // takes an Idempotency-Key
}

// param is a query parameter.
type param struct {
	name, doc string
	schema    func() *huma.Schema
}

// none stands for no body, in either direction.
type none struct{}

// handle binds a call to its path: B is its body, O its answer.
func handle[B, O any](s *Server, rt route, do func(ctx context.Context, c *call, in *B) (O, error)) {
	body, answer := reflect.TypeFor[B](), reflect.TypeFor[O]()
	op := s.document(rt, body, answer)
	s.api.OpenAPI().AddOperation(op)
	s.api.Adapter().Handle(op, func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		ctx, cancel := context.WithTimeout(r.Context(), s.patience)
		defer cancel()
		var in B
		var out O
		c, err := s.admit(ctx, rt, r)
		if err == nil && body != reflect.TypeFor[none]() {
			if err = c.readBody(w); err == nil {
				err = decode(c.body, &in, s.limits.Depth)
			}
		}
		if err == nil {
			out, err = do(ctx, c, &in)
		}
		if err == nil {
			err = answerWith(w, out)
		}
		if err != nil {
			s.fail(w, r, c, err)
		}
	})
}

// appender is an answer that knows its own bytes, because they are the socket's or hold data as it came.
type appender interface{ append(b []byte) []byte }

func answerWith(w http.ResponseWriter, out any) error {
	if _, nothing := out.(none); nothing {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	var b []byte
	if a, ok := out.(appender); ok {
		b = a.append(nil)
	} else {
		var err error
		if b, err = json.Marshal(out); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(b) // the client may be gone
	return nil
}

// fail answers with a problem, and tells the operator the cause of one that the caller cannot do anything about.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, c *call, err error) {
	made := ""
	if c != nil && c.made {
		made = c.cmid
	}
	gone := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, posthorn.ErrUnknown)
	if e := posthorn.AsError(err); statusOf(e.Code) == http.StatusInternalServerError && !gone {
		s.log.Error("call failed", "method", methodName(r), "route", routeName(r), "err", err)
	}
	s.refuse(w, err, made)
}

// names are the placeholders of the path.
func (rt route) names() (names []string) {
	for _, part := range strings.Split(rt.path, "/") {
		if n, ok := strings.CutPrefix(part, "{"); ok {
			names = append(names, strings.TrimSuffix(n, "}"))
		}
	}
	return names
}
