package api

import (
	"context"
	"net/http"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

type openBody struct {
	Kind    field[string]   `json:"kind" enum:"direct,group,channel"`
	Members field[[]string] `json:"members,omitempty" doc:"The first members; the user of a device token is added."`
	Title   field[string]   `json:"title,omitempty"`
	History field[string]   `json:"history,omitempty" enum:"joined,all" doc:"Whether those who come in later see what lies before; joined where absent."`
	Conv    field[string]   `json:"conv,omitempty" doc:"The id, never used twice; for server keys only, made by the server where absent."`
}

type openAnswer struct {
	Conv string `json:"conv"`
	Head int64  `json:"head" doc:"The newest event's seq."`
	Dup  bool   `json:"dup" doc:"The same request had been carried out before, or the two have a direct conversation already."`
	Cmid string `json:"cmid" doc:"The Idempotency-Key, or what the server made in its place."`
}

type metaBody struct {
	Title field[string] `json:"title"`
}

// entryAnswer leaves in the bytes of a socket's entry.
type entryAnswer struct{ e posthorn.Entry }

func (a entryAnswer) append(b []byte) []byte { return wire.AppendEntry(b, &a.e) }

type listAnswer struct{ l posthorn.List }

func (a listAnswer) append(b []byte) []byte { return wire.AppendListBody(b, &a.l) }

func (s *Server) conversations() {
	handle(s, route{
		method: http.MethodPost, path: "/conversations", id: "openConversation", scope: ScopeWrite, device: true, keyed: true,
		summary: "Open a conversation", more: "A device token's user becomes its owner.",
	}, s.openConversation)
	handle(s, route{
		method: http.MethodGet, path: "/conversations/{conv}", id: "getConversation", scope: ScopeRead, device: true,
		summary: "Show a conversation",
	}, func(ctx context.Context, c *call, _ *none) (entryAnswer, error) {
		e, err := s.cfg.Entries.Entry(ctx, c.viewer(), c.path("conv"))
		return entryAnswer{e}, err
	})
	handle(s, route{
		method: http.MethodPatch, path: "/conversations/{conv}", id: "changeConversation", scope: ScopeWrite, device: true, keyed: true,
		summary: "Change a conversation's title",
	}, func(ctx context.Context, c *call, in *metaBody) (writtenAnswer, error) {
		if !in.Title.set {
			return writtenAnswer{}, posthorn.Errorf(posthorn.CodeBadFrame, "title is missing")
		}
		if err := c.text("title", in.Title, c.limits.TitleBytes); err != nil {
			return writtenAnswer{}, err
		}
		op := c.op(posthorn.KindMeta)
		op.Title = in.Title.val
		return s.submit(ctx, op)
	})
	handle(s, route{
		method: http.MethodGet, path: "/users/{user}/conversations", id: "listConversations", scope: ScopeRead, device: true,
		query:   append(paged(), param{"since", "Only what has changed since; the `since` of an earlier list.", textSchema}),
		summary: "List a user's conversations", more: "As the user sees them. A device token may name its own user only.",
	}, s.listConversations)
}

func (s *Server) openConversation(ctx context.Context, c *call, in *openBody) (openAnswer, error) {
	o := posthorn.Open{Creator: c.User, AsServer: c.Server(), Cmid: c.cmid, Conv: in.Conv.val, Kind: posthorn.ConvKind(in.Kind.val),
		Title: in.Title.val, History: in.History.val}
	switch o.Kind {
	case posthorn.Direct, posthorn.Group, posthorn.Channel:
	default:
		return openAnswer{}, posthorn.Errorf(posthorn.CodeBadFrame, "kind must be direct, group or channel")
	}
	if !in.History.set {
		o.History = "joined"
	} else if o.History != "joined" && o.History != "all" {
		return openAnswer{}, posthorn.Errorf(posthorn.CodeBadFrame, "history must be joined or all")
	}
	if err := firstError(c.optID("conv", in.Conv), c.text("title", in.Title, c.limits.TitleBytes)); err != nil {
		return openAnswer{}, err
	}
	if in.Conv.set && !c.Server() {
		return openAnswer{}, posthorn.Errorf(posthorn.CodeForbidden, "only a server key may choose a conversation's id")
	}
	var err error
	if o.Members, err = c.people("members", in.Members); err != nil {
		return openAnswer{}, err
	}
	got, err := s.cfg.Log.OpenConversation(ctx, o)
	return openAnswer{Conv: got.Conv, Head: got.Head, Dup: got.Dup, Cmid: c.cmid}, err
}

func (s *Server) listConversations(ctx context.Context, c *call, _ *none) (listAnswer, error) {
	after, limit, err := c.listed()
	if err != nil {
		return listAnswer{}, err
	}
	since, err := c.opaque("since")
	if err != nil {
		return listAnswer{}, err
	}
	user := c.path("user")
	if !c.Server() && user != c.User {
		return listAnswer{}, posthorn.Errorf(posthorn.CodeForbidden, "a device token may list its own user's conversations only")
	}
	l, err := s.cfg.Log.Conversations(ctx, posthorn.Viewer{User: user}, posthorn.ListQuery{Since: since, After: after, Limit: limit})
	return listAnswer{l}, err
}
