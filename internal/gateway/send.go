package gateway

import (
	"context"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// send hands a message to the log. The reply comes from the hub, in seq order with the pushes of the conversation.
func send(_ context.Context, r *request, f wire.Frame) {
	m := f.(*wire.Send)
	r.submit(&posthorn.Op{Kind: posthorn.KindMsg, Conv: m.Conv, Cmid: m.Cmid, Body: m.Body, Data: m.Data, ReplyTo: m.ReplyTo})
}

// change hands a membership change to the log. leave is a leave event that names the sender alone.
func change(_ context.Context, r *request, f wire.Frame) {
	c := f.(*wire.Change)
	op := &posthorn.Op{Kind: posthorn.KindLeave, Conv: c.Conv, Cmid: c.Cmid, Users: c.Users}
	switch c.T {
	case "add":
		op.Kind, op.Role = posthorn.KindJoin, posthorn.RoleMember
	case "leave":
		op.Users = []string{r.s.session.Viewer.User}
	}
	r.submit(op)
}

func (r *request) submit(op *posthorn.Op) {
	v := r.s.session.Viewer
	op.Sender, op.DeviceID, op.Epoch, op.Origin, op.Submitted = v.User, v.DeviceID, v.Epoch, r.s, time.Now()
	op.Done = func(o posthorn.Outcome) {
		if o.Err != nil {
			r.fail(o.Err)
			return
		}
		r.answer(&wire.Sent{
			RID: r.rid, Conv: op.Conv, Seq: o.Seq, Prev: o.Prev, Mid: o.Mid, Dup: o.Dup, Epoch: o.Epoch, At: o.At.UnixMilli(),
		})
	}
	r.s.g.cfg.Log.Submit(op)
}

// open makes a conversation. It is not a line in an existing log, so it has a call of its own.
func open(ctx context.Context, r *request, f wire.Frame) {
	o := f.(*wire.Open)
	v := r.s.session.Viewer
	opened, err := r.s.g.cfg.Log.OpenConversation(ctx, posthorn.Open{
		Creator: v.User, Device: v.DeviceID, Cmid: o.Cmid, Kind: o.Kind, Title: o.Title, Members: o.Members, History: o.History,
	})
	if err != nil {
		r.fail(err)
		return
	}
	r.answer(&wire.Opened{RID: r.rid, Conv: opened.Conv, Head: opened.Head, Dup: opened.Dup})
}
