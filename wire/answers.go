package wire

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/posthorn/posthorn"
)

// DecodeServer reads one frame that a server sent, for clients. A later server may say more than this version knows:
// unknown frames become *Unknown, unknown fields and kinds are passed over, null means absent, and whatever lies in data
// or in unknown fields need only be JSON, so that no content can stop a client's log. What the client lives by is held as
// strictly as on the way in: integers are exact or refused (B72), and a missing number never counts as 0 where it moves a
// cursor. Failures are a *FrameError, whose RID tells which request it answered.
func DecodeServer(frame []byte) (Frame, error) {
	if !utf8.Valid(frame) || !jsontext.Value(frame).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return nil, &FrameError{Err: grammar(frame)}
	}
	var a answer
	if !a.collect(frame) {
		return nil, &FrameError{Err: posthorn.Errorf(posthorn.CodeBadFrame, "a frame is one JSON object")}
	}
	t, rid := a.must(fT), a.str(fRID)
	f := a.frame(t, rid)
	if a.err != nil {
		e := &FrameError{T: f.Type(), RID: rid, Err: a.err}
		if _, ok := f.(*Unknown); ok {
			e.T = ""
		}
		return nil, e
	}
	return f, nil
}

// frame reads the fields that a frame of type t has.
func (a *answer) frame(t, rid string) Frame {
	switch t {
	case "event":
		return &Event{Prev: a.mustNum(fPrev), Ev: a.eventIn(fEv, a.value(fEv))}
	case "sent":
		return a.sent(rid)
	case "acked":
		return &Acked{RID: rid, Conv: a.must(fConv), Delivered: a.mustNum(fDelivered)}
	case "page":
		return &Page{RID: rid, Page: a.page()}
	case "hint":
		return &Hint{Conv: a.must(fConv), Head: a.mustNum(fHead), RV: a.num(fRV), Why: a.str(fWhy)}
	case "typing":
		return &Typing{Conv: a.must(fConv), User: a.must(fUser)}
	case "welcome":
		return &Welcome{RID: rid, User: a.must(fUser), Device: a.must(fDevice), InstallEpoch: a.mustNum(fInstallEpoch),
			Resume: a.str(fResume), HeartbeatMS: a.num(fHeartbeatMS), MaxFrame: a.num(fMaxFrame), Gateway: a.str(fGateway), Epoch: a.mustNum(fEpoch)}
	case "confirmed":
		return &Confirmed{RID: rid, Conv: a.must(fConv), Seq: a.mustNum(fSeq), Mid: a.str(fMid)}
	case "subbed":
		return &Subbed{RID: rid, Convs: a.entries(), Next: a.str(fNext), Since: a.str(fSince)}
	case "opened":
		return &Opened{RID: rid, Conv: a.must(fConv), Head: a.mustNum(fHead), Dup: a.flag(fDup)}
	case "memberlist":
		return &MemberList{RID: rid, Conv: a.must(fConv), Members: a.members(), Next: a.str(fNext)}
	case "pong":
		return &Pong{RID: rid}
	case "conv":
		return &Conv{Entry: a.entryIn(fEntry, a.value(fEntry))}
	case "error":
		return &Error{RID: rid, Code: posthorn.Code(a.must(fCode)), Msg: a.str(fMsg), RetryMS: a.num(fRetryMS)}
	case "bye":
		return &Bye{Code: posthorn.Code(a.must(fCode)), ReconnectMS: a.num(fReconnectMS)}
	default:
		return &Unknown{T: t}
	}
}

func (a *answer) sent(rid string) *Sent {
	f := &Sent{RID: rid, Conv: a.must(fConv), Seq: a.mustNum(fSeq), Mid: a.must(fMid), Dup: a.flag(fDup), Epoch: a.mustNum(fEpoch), At: a.num(fAt)}
	if !f.Dup {
		// A prev of 0 would let the cursor step over a gap, so that a missing one must not pass for it.
		f.Prev = a.mustNum(fPrev)
	}
	return f
}
