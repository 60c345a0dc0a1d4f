package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/posthorn/posthorn"
)

// Decode reads one frame that a client sent. The frame is taken whole or not at all: what is malformed, out of bounds or
// missing is refused here, so that no later room meets a value that it cannot keep (B01, B14, B38). Every failure is a
// *FrameError. The result shares no memory with the input.
//
// The way: size, grammar (jsontext: RFC 8259, unique names, valid UTF-8), one walk that notes where each field lies and
// looks for U+0000 and depth at every level, then the fields that this frame has. Fields that it does not have are
// ignored, whatever they hold: a client's own at, seq, sender or mid in send says nothing (B09).
func Decode(frame []byte, lim posthorn.Limits) (Frame, error) {
	if len(frame) > lim.FrameIn {
		// Only as much is looked through for a rid as a legal frame would have cost.
		return nil, refuse(frame[:lim.FrameIn], posthorn.Errorf(posthorn.CodeTooLarge, "the frame is larger than %d bytes", lim.FrameIn), lim.CmidBytes)
	}
	if !jsontext.Value(frame).IsValid() {
		return nil, refuse(frame, grammar(frame), lim.CmidBytes)
	}
	var r request
	r.lim = lim
	if !r.collect(frame) {
		return nil, &FrameError{Err: posthorn.Errorf(posthorn.CodeBadFrame, "a frame is one JSON object")}
	}
	// rid first: whatever else is wrong, the answer can name the request.
	rid := r.optID(fRID, lim.CmidBytes)
	if r.deepest > lim.Depth {
		r.fail(posthorn.CodeBadFrame, "the frame is nested deeper than %d", lim.Depth)
	}
	if r.nul {
		r.fail(posthorn.CodeBadFrame, "the frame contains U+0000")
	}
	f := r.frame(rid)
	if r.err != nil {
		return nil, &FrameError{T: requestType(r.val[fT]), RID: rid, Err: r.err}
	}
	return f, nil
}

// request is a client's frame taken apart. The first thing found wrong is kept in err; the getters then go on with zero
// values, so that a decoder of one frame reads like the table in protocol.md.
type request struct {
	object
	lim posthorn.Limits // a copy: a pointer would move the caller's to the heap with each frame
	err *posthorn.Error
}

func (r *request) fail(code posthorn.Code, format string, args ...any) {
	if r.err == nil {
		r.err = posthorn.Errorf(code, format, args...)
	}
}

// check keeps the refusal of one of the root's rules.
func (r *request) check(err error) {
	if err != nil && r.err == nil {
		r.err = posthorn.AsError(err)
	}
}

// bad refuses a field that does not hold what it should.
func (r *request) bad(name, want string) {
	r.fail(posthorn.CodeBadFrame, "%s must be %s", name, want)
}

// need refuses the frame where a required field is missing, and tells whether it is there.
func (r *request) need(f field) bool {
	if !r.has(f) {
		r.fail(posthorn.CodeBadFrame, "%s is missing", f)
		return false
	}
	return true
}
