package api

import (
	"context"
	"time"

	"github.com/posthorn/posthorn"
)

// viewer is for whom a call reads: everything for a server key; a device token reads as its user, without the device, so
// that no cursor and no start mark is touched.
func (c *call) viewer() posthorn.Viewer {
	if c.Server() {
		return posthorn.Viewer{Server: true}
	}
	return posthorn.Viewer{User: c.User}
}

// op begins an op of the caller's: for its user where a device token calls, for nobody where a server key does.
func (c *call) op(kind posthorn.Kind) *posthorn.Op {
	return &posthorn.Op{Kind: kind, Conv: c.path("conv"), Sender: c.User, AsServer: c.Server(), Cmid: c.cmid}
}

// writtenAnswer tells of the event that a call has written.
type writtenAnswer struct {
	Conv  string `json:"conv" doc:"The conversation."`
	Seq   int64  `json:"seq" doc:"The event's place in the conversation."`
	Mid   string `json:"mid" doc:"The event's id, made by the server."`
	Dup   bool   `json:"dup" doc:"The same request had been carried out before; seq and mid are those of then."`
	Cmid  string `json:"cmid" doc:"The Idempotency-Key, or what the server made in its place."`
	Epoch int64  `json:"epoch" doc:"Names the sequence space; compare it for equality only."`
	At    int64  `json:"at,omitzero" doc:"The database's time in milliseconds since 1970."`
}

// submit hands the op to the log and waits for its commit. Where the wait ends first the outcome is unknown: the op may
// still commit, and only a retry under the same key finds out (D1, D2).
func (s *Server) submit(ctx context.Context, op *posthorn.Op) (writtenAnswer, error) {
	done := make(chan posthorn.Outcome, 1) // Done must not block, and may come when nobody waits any more
	op.Submitted = time.Now()
	op.Done = func(o posthorn.Outcome) { done <- o }
	s.cfg.Log.Submit(op)
	select {
	case o := <-done:
		if o.Err != nil {
			return writtenAnswer{}, o.Err
		}
		a := writtenAnswer{Conv: op.Conv, Seq: o.Seq, Mid: o.Mid, Dup: o.Dup, Cmid: op.Cmid, Epoch: o.Epoch}
		if !o.At.IsZero() {
			a.At = o.At.UnixMilli()
		}
		return a, nil
	case <-ctx.Done():
		return writtenAnswer{}, posthorn.ErrUnknown
	}
}
