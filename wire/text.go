package wire

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/posthorn/posthorn"
)

const (
	maxToken  = 8 << 10 // a JWT with many claims
	maxOpaque = 512     // resume, since: what a server made, with room for later servers
)

// unquote copies a JSON string's text; false where it is not valid Unicode.
func unquote(tok []byte) (string, bool) {
	if bytes.IndexByte(tok, '\\') < 0 {
		return string(tok[1 : len(tok)-1]), true
	}
	b, err := jsontext.AppendUnquote(make([]byte, 0, len(tok)), tok)
	return string(b), err == nil
}

// str is the text of a value that must be a string. That it is valid UTF-8 without U+0000 is known by now.
func (r *request) str(name string, tok []byte) string {
	if tok[0] != '"' {
		r.bad(name, "a string")
		return ""
	}
	s, _ := unquote(tok)
	return s
}

// id is a required id.
func (r *request) id(f field, limit int) string {
	if !r.need(f) {
		return ""
	}
	return r.optID(f, limit)
}

// optID is an id that may be absent; where it came it must not be empty.
func (r *request) optID(f field, limit int) string {
	if !r.has(f) {
		return ""
	}
	return r.checkID(f.String(), r.val[f], limit)
}

func (r *request) checkID(name string, tok []byte, limit int) string {
	s := r.str(name, tok)
	if err := posthorn.CheckID(name, s, limit); err != nil {
		r.check(err)
		return "" // a bad rid must not be answered with
	}
	return s
}

// optText is a text for which empty means the same as absent.
func (r *request) optText(f field, limit int, over posthorn.Code) string {
	if !r.has(f) {
		return ""
	}
	s := r.str(f.String(), r.val[f])
	if len(s) > limit {
		r.fail(over, "%s is longer than %d bytes", f, limit)
	}
	return s
}

// requestType is a t as one of the protocol's client frames, or "".
func requestType(tok []byte) string {
	if len(tok) < 2 || tok[0] != '"' {
		return ""
	}
	if bytes.IndexByte(tok, '\\') >= 0 {
		s, _ := unquote(tok)
		return knownRequest(s)
	}
	return knownRequest(string(tok[1 : len(tok)-1]))
}

// knownRequest returns the constant, so that the text of the frame is not copied.
func knownRequest(t string) string {
	switch t {
	case "send":
		return "send"
	case "ack":
		return "ack"
	case "sync":
		return "sync"
	case "hello":
		return "hello"
	case "confirm":
		return "confirm"
	case "sub":
		return "sub"
	case "history":
		return "history"
	case "open":
		return "open"
	case "add":
		return "add"
	case "remove":
		return "remove"
	case "leave":
		return "leave"
	case "members":
		return "members"
	case "ping":
		return "ping"
	case "typing":
		return "typing"
	}
	return ""
}
