package wire

import (
	"bytes"

	"github.com/posthorn/posthorn"
)

// frame reads the fields that the frame's type has.
func (r *request) frame(rid string) Frame {
	if !r.need(fT) || r.err != nil {
		return nil
	}
	switch t := requestType(r.val[fT]); t {
	case "send":
		return r.send(rid)
	case "ack":
		return &Ack{RID: rid, Conv: r.conv(), Seq: r.integer(fSeq), RV: r.integerPtr(fRV)}
	case "sync":
		return r.sync(rid)
	case "hello":
		return r.hello(rid)
	case "confirm":
		return &Confirm{RID: rid, Conv: r.conv(), Pairs: r.pairs()}
	case "sub":
		return &Sub{RID: rid, Since: r.optText(fSince, maxOpaque, posthorn.CodeBadFrame), After: r.cursor(), Limit: r.limit()}
	case "history":
		return &History{RID: rid, Conv: r.conv(), Before: r.integer(fBefore), Limit: r.limit()}
	case "open":
		return r.openConv(rid)
	case "add", "remove":
		return &Change{T: t, RID: rid, Conv: r.conv(), Cmid: r.cmid(), Users: r.someUsers()}
	case "leave":
		return &Change{T: t, RID: rid, Conv: r.conv(), Cmid: r.cmid()}
	case "members":
		return &Members{RID: rid, Conv: r.conv(), After: r.cursor(), Limit: r.limit()}
	case "ping":
		return &Ping{RID: rid}
	case "typing":
		return &Typing{RID: rid, Conv: r.conv()}
	default:
		r.fail(posthorn.CodeBadFrame, "t is not a frame that this server knows")
		return nil
	}
}

func (r *request) conv() string { return r.id(fConv, r.lim.IDBytes) }
func (r *request) cmid() string { return r.id(fCmid, r.lim.CmidBytes) }

// cursor is the id after which a list goes on; an empty one begins at the beginning, as an absent one does.
func (r *request) cursor() string { return r.optText(fAfter, r.lim.IDBytes, posthorn.CodeBadFrame) }

func (r *request) hello(rid string) Frame {
	f := &Hello{RID: rid, Device: r.id(fDevice, r.lim.IDBytes), Install: r.integerPtr(fInstall), Epoch: r.optInteger(fEpoch)}
	f.Resume = r.optText(fResume, maxOpaque, posthorn.CodeBadFrame)
	f.Token = r.id(fToken, maxToken)
	return f
}

func (r *request) send(rid string) Frame {
	// One allocation for the frame and the header of the body that it points to.
	f := new(struct {
		Send
		body string
	})
	f.RID, f.Conv, f.Cmid, f.ReplyTo = rid, r.conv(), r.cmid(), r.positive(fReplyTo)
	if r.has(fBody) {
		f.body = r.str("body", r.val[fBody])
		f.Body = &f.body
	}
	data := r.val[fData]
	switch {
	case data != nil && data[0] != '{':
		r.bad("data", "an object")
	case data == nil && f.Body == nil:
		r.fail(posthorn.CodeBadFrame, "body and data are both missing")
	case len(f.body)+len(data) > r.lim.BodyBytes:
		r.fail(posthorn.CodeTooLarge, "body and data are larger than %d bytes", r.lim.BodyBytes)
	}
	f.Data = bytes.Clone(data) // never re-encoded: its numbers and order are the client's own
	return &f.Send
}

func (r *request) sync(rid string) Frame {
	f := &Sync{RID: rid, Conv: r.conv(), Limit: r.limit(), RV: r.integerPtr(fRV)}
	switch {
	case r.has(fAfter) == r.has(fTail):
		r.fail(posthorn.CodeBadFrame, "sync needs either after or tail")
	case r.has(fAfter):
		f.After = r.integer(fAfter)
	default:
		f.Tail = int(r.positive(fTail))
	}
	return f
}

func (r *request) openConv(rid string) Frame {
	f := &Open{RID: rid, Cmid: r.cmid(), Title: r.optText(fTitle, r.lim.TitleBytes, posthorn.CodeTooLarge), History: "joined"}
	if r.need(fKind) {
		switch f.Kind = posthorn.ConvKind(r.str("kind", r.val[fKind])); f.Kind {
		case posthorn.Direct, posthorn.Group, posthorn.Channel:
		default:
			r.bad("kind", "direct, group or channel")
		}
	}
	if r.has(fHistory) {
		if f.History = r.str("history", r.val[fHistory]); f.History != "joined" && f.History != "all" {
			r.bad("history", "joined or all")
		}
	}
	f.Members = r.people(fMembers)
	return f
}
