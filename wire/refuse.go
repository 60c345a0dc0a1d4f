package wire

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/posthorn/posthorn"
)

// FrameError is a frame that was not understood, with what is needed to answer it.
type FrameError struct {
	T   string // the frame's type, where it is one of the protocol's; never what somebody made up
	RID string // the request's rid, where a valid one could be found
	Err *posthorn.Error
}

func (e *FrameError) Error() string {
	if e.T == "" {
		return "frame: " + e.Err.Error()
	}
	return e.T + ": " + e.Err.Error()
}

// Unwrap leads to the code.
func (e *FrameError) Unwrap() error { return e.Err }

// grammar says in few words why a frame is no JSON. The text goes to a client, so it quotes nothing of the frame.
func grammar(frame []byte) *posthorn.Error {
	d := jsontext.NewDecoder(bytes.NewBuffer(frame))
	_, err := d.ReadValue()
	if err == nil {
		return posthorn.Errorf(posthorn.CodeBadFrame, "something follows the object")
	}
	var at int64
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at = syntax.ByteOffset
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return posthorn.Errorf(posthorn.CodeBadFrame, "a field is repeated at byte %d", at)
	case !utf8.Valid(frame):
		return posthorn.Errorf(posthorn.CodeBadFrame, "the frame is not valid UTF-8")
	default:
		return posthorn.Errorf(posthorn.CodeBadFrame, "the frame is not valid JSON at byte %d", at)
	}
}

// refuse looks in a frame that is no JSON, or too large, for the t and rid that stand before the fault or, where the
// fault is a repeated name or bad text, anywhere: an answer that names its request spares the client a time-out.
func refuse(frame []byte, err *posthorn.Error, ridBytes int) *FrameError {
	e := &FrameError{Err: err}
	d := jsontext.NewDecoder(bytes.NewBuffer(frame), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != jsontext.KindBeginObject {
		return e
	}
	for d.PeekKind() == jsontext.KindString {
		tok, err := d.ReadToken()
		if err != nil {
			break
		}
		name := tok.String()
		val, err := d.ReadValue()
		if err != nil {
			break
		}
		switch {
		case name == "t" && e.T == "":
			e.T = requestType(val)
		case name == "rid" && e.RID == "" && val.Kind() == jsontext.KindString:
			if s, ok := unquote(val); ok && posthorn.CheckID("rid", s, ridBytes) == nil {
				e.RID = s
			}
		}
	}
	return e
}
