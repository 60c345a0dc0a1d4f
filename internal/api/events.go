package api

import (
	"context"
	"net/http"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

type sendBody struct {
	Sender  field[string] `json:"sender,omitempty" doc:"For whom a server key sends, a member; nobody where absent. A device token may name its own user only."`
	Body    field[string] `json:"body,omitempty" doc:"Text. Body or data must be there; both together have at most 64 KiB."`
	Data    field[object] `json:"data,omitempty" doc:"Kept as the bytes that came."`
	ReplyTo field[number] `json:"reply_to,omitempty" doc:"The seq of the event that this one answers."`
}

// pageAnswer leaves in the bytes of a socket's page.
type pageAnswer struct{ p posthorn.Page }

func (a pageAnswer) append(b []byte) []byte { return wire.AppendPageBody(b, &a.p) }

func (s *Server) events() {
	handle(s, route{
		method: http.MethodPost, path: "/conversations/{conv}/events", id: "send", scope: ScopeWrite, device: true, keyed: true,
		summary: "Send a message", more: "The Idempotency-Key is the message's cmid, unique per conversation and sender.",
	}, s.send)
	handle(s, route{
		method: http.MethodGet, path: "/conversations/{conv}/events", id: "listEvents", scope: ScopeRead, device: true,
		query: []param{
			{"after", "Events behind this seq, oldest first; 0 where both are absent.", seqSchema},
			{"before", "Events before this seq, newest first; 1 or more, not together with after.", seqSchema},
			{"limit", "How many, 100 by default; above 500 it counts as 500. A page may end earlier: see more.", limitSchema},
		},
		summary: "Read events", more: "As a socket's sync and history, without moving a cursor or setting a start mark. A server key sees everything.",
	}, s.page)
}

func (s *Server) send(ctx context.Context, c *call, in *sendBody) (writtenAnswer, error) {
	if err := c.optID("sender", in.Sender); err != nil {
		return writtenAnswer{}, err
	}
	op := c.op(posthorn.KindMsg)
	op.Body, op.Data, op.ReplyTo = given(in.Body), in.Data.val, int64(in.ReplyTo.val)
	switch {
	case !in.Body.set && !in.Data.set:
		return writtenAnswer{}, posthorn.Errorf(posthorn.CodeBadFrame, "body and data are both missing")
	case len(in.Body.val)+len(in.Data.val) > c.limits.BodyBytes:
		return writtenAnswer{}, posthorn.Errorf(posthorn.CodeTooLarge, "body and data are larger than %d bytes", c.limits.BodyBytes)
	case in.ReplyTo.set && op.ReplyTo < 1:
		return writtenAnswer{}, posthorn.Errorf(posthorn.CodeBadFrame, "reply_to must be 1 or more")
	case c.Server():
		op.Sender = in.Sender.val
	case in.Sender.set && in.Sender.val != c.User:
		return writtenAnswer{}, posthorn.Errorf(posthorn.CodeForbidden, "a device token may send for its own user only")
	}
	return s.submit(ctx, op)
}

func (s *Server) page(ctx context.Context, c *call, _ *none) (pageAnswer, error) {
	after, forth, err := c.seq("after")
	if err != nil {
		return pageAnswer{}, err
	}
	before, back, err := c.seq("before")
	if err != nil {
		return pageAnswer{}, err
	}
	limit, err := c.limit()
	switch {
	case err != nil:
		return pageAnswer{}, err
	case forth && back:
		return pageAnswer{}, posthorn.Errorf(posthorn.CodeBadFrame, "either after or before, not both")
	case back && before < 1:
		return pageAnswer{}, posthorn.Errorf(posthorn.CodeBadFrame, "before must be 1 or more")
	}
	p, err := s.cfg.Log.Page(ctx, c.viewer(), posthorn.PageQuery{Conv: c.path("conv"), After: after, Before: before, History: back, Limit: limit})
	return pageAnswer{p}, err
}
