package api

import (
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// openAPIConfig names no paths of huma's own: its pages load scripts from elsewhere, and its document is made anew by
// whichever request comes first, unguarded.
func (s *Server) openAPIConfig() huma.Config {
	cfg := huma.Config{OpenAPI: &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Posthorn", Version: s.cfg.Version, Description: "Strings are valid UTF-8 without U+0000. Unknown fields are ignored, " +
			"repeated ones and null are refused. Every error is a problem document with a code."},
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"bearer": {Type: "http", Scheme: "bearer", Description: "A server key with its scopes, or a device token, which may do what its user may do."},
			},
		},
	}}
	cfg.AllowAdditionalPropertiesByDefault = true
	return cfg
}

// document describes a call.
func (s *Server) document(rt route, body, answer reflect.Type) *huma.Operation {
	op := &huma.Operation{Method: rt.method, Path: rt.path, OperationID: rt.id, Summary: rt.summary, Description: rt.more, Responses: map[string]*huma.Response{}}
	if rt.scope != "" {
		op.Security = []map[string][]string{{"bearer": {rt.scope}}}
		if op.Description != "" {
			op.Description += " "
		}
		op.Description += "Scope: " + rt.scope + "."
		if rt.device {
			op.Description += " A device token may call it for its user."
		}
	}
	for _, name := range rt.names() {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "path", Required: true, Schema: textSchema()})
	}
	for _, p := range rt.query {
		op.Parameters = append(op.Parameters, &huma.Param{Name: p.name, In: "query", Description: p.doc, Schema: p.schema()})
	}
	if rt.keyed {
		op.Parameters = append(op.Parameters, &huma.Param{Name: "Idempotency-Key", In: "header", Schema: textSchema(), Description: "1 to 64 bytes of UTF-8, compared byte for byte. " +
			"Repeating a request with its key carries it out once. Without one the server makes a key and answers with it as cmid; then a repeated request is a second one."})
	}
	if body != reflect.TypeFor[none]() {
		op.RequestBody = &huma.RequestBody{Required: true, Content: s.content("application/json", body)}
	}
	if answer == reflect.TypeFor[none]() {
		op.Responses["204"] = &huma.Response{Description: "Done."}
	} else {
		op.Responses["200"] = &huma.Response{Description: "Done.", Content: s.content("application/json", answer)}
	}
	op.Responses["default"] = s.problemResponse()
	return op
}

func (s *Server) content(mime string, t reflect.Type) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{mime: {Schema: s.api.OpenAPI().Components.Schemas.Schema(t, true, "")}}
}

func (s *Server) problemResponse() *huma.Response {
	return &huma.Response{Description: "A problem (RFC 9457).", Content: s.content(problemType, reflect.TypeFor[problem]())}
}

// documentHealth describes a call that stands beside /api/v1.
func (s *Server) documentHealth(path, id, summary string, answer any) {
	op := &huma.Operation{OperationID: id, Summary: summary, Responses: map[string]*huma.Response{
		"200":     {Description: "Yes.", Content: s.content("application/json", reflect.TypeOf(answer))},
		"default": s.problemResponse(),
	}}
	paths := s.api.OpenAPI().Paths
	paths[path] = &huma.PathItem{Get: op, Servers: []*huma.Server{{URL: "/"}}}
}

// serveOpenAPI makes the document once, when all calls are known.
func (s *Server) serveOpenAPI() error {
	doc, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		return err
	}
	s.mux.HandleFunc("GET "+prefix+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(doc) // the client may be gone
	})
	return nil
}
