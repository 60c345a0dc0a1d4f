package api

import (
	"context"
	"net/http"
)

type keyBody struct {
	Name   field[string]   `json:"name" doc:"For people."`
	Scopes field[[]string] `json:"scopes" doc:"Of read, write and admin. Admin includes the others, write does not include read."`
}

type keyAnswer struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Scopes  []Scope `json:"scopes" nullable:"false"`
	Revoked bool    `json:"revoked"`
}

type newKeyAnswer struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Scopes []Scope `json:"scopes" nullable:"false"`
	Key    string  `json:"key" doc:"Shown this once."`
}

type keysAnswer struct {
	Keys []keyAnswer `json:"keys" nullable:"false"`
	Next string      `json:"next,omitzero" doc:"Absent at the end."`
}

func (s *Server) keys() {
	handle(s, route{
		method: http.MethodPost, path: "/keys", id: "createKey", scope: ScopeAdmin, summary: "Make a server key",
	}, func(ctx context.Context, c *call, in *keyBody) (newKeyAnswer, error) {
		if err := c.id("name", in.Name); err != nil {
			return newKeyAnswer{}, err
		}
		k, text, err := s.cfg.Keyring.CreateKey(ctx, in.Name.val, in.Scopes.val)
		return newKeyAnswer{ID: k.ID, Name: k.Name, Scopes: k.Scopes, Key: text}, err
	})
	handle(s, route{
		method: http.MethodGet, path: "/keys", id: "listKeys", scope: ScopeAdmin, query: paged(),
		summary: "List server keys", more: "Without their text, which nobody has any more; revoked ones too.",
	}, func(ctx context.Context, c *call, _ *none) (keysAnswer, error) {
		after, limit, err := c.listed()
		if err != nil {
			return keysAnswer{}, err
		}
		keys, next, err := s.cfg.Keyring.ListKeys(ctx, after, limit)
		a := keysAnswer{Keys: make([]keyAnswer, 0, len(keys)), Next: next}
		for _, k := range keys {
			a.Keys = append(a.Keys, keyAnswer(k))
		}
		return a, err
	})
	handle(s, route{
		method: http.MethodDelete, path: "/keys/{key}", id: "revokeKey", scope: ScopeAdmin,
		summary: "Revoke a server key", more: "It is refused from the next call on.",
	}, func(ctx context.Context, c *call, _ *none) (none, error) {
		return none{}, s.cfg.Keyring.RevokeKey(ctx, c.path("key"))
	})
}
