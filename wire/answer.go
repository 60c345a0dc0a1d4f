package wire

import (
	"strings"

	"github.com/posthorn/posthorn"
)

// answer is a server's frame, or a noun within one, taken apart. As in request, the first fault is kept and the getters
// go on with zero values.
type answer struct {
	object
	err *posthorn.Error
}

func (a *answer) fail(f field, want string) {
	if a.err == nil {
		a.err = posthorn.Errorf(posthorn.CodeBadFrame, "%s must be %s", f, want)
	}
}

// value is what a field holds, nil where it is absent or null.
func (a *answer) value(f field) []byte {
	v := a.val[f]
	if len(v) > 0 && v[0] == 'n' {
		return nil
	}
	return v
}

func (a *answer) str(f field) string {
	v := a.value(f)
	if v == nil {
		return ""
	}
	s, ok := text(v)
	if !ok {
		a.fail(f, "a string of valid text")
	}
	return s
}

// text is a string that may be kept: valid Unicode without U+0000.
func text(tok []byte) (string, bool) {
	if tok[0] != '"' {
		return "", false
	}
	s, ok := unquote(tok)
	if !ok || strings.IndexByte(s, 0) >= 0 {
		return "", false
	}
	return s, true
}

func (a *answer) must(f field) string {
	s := a.str(f)
	if s == "" {
		a.fail(f, "there and not empty")
	}
	return s
}

func (a *answer) num(f field) int64 {
	v := a.value(f)
	if v == nil {
		return 0
	}
	n, ok := exact(v)
	if !ok {
		a.fail(f, "an integer of 64 bits")
	}
	return n
}

func (a *answer) mustNum(f field) int64 {
	if a.value(f) == nil {
		a.fail(f, "there")
	}
	return a.num(f)
}

func (a *answer) flag(f field) bool {
	switch v := a.value(f); {
	case v == nil || v[0] == 'f':
		return false
	case v[0] == 't':
		return true
	default:
		a.fail(f, "true or false")
		return false
	}
}

// list calls each with every element of an array; an absent one is empty.
func (a *answer) list(f field, each func(tok []byte)) {
	v := a.value(f)
	if v == nil {
		return
	}
	if v[0] != '[' {
		a.fail(f, "a list")
		return
	}
	s := scan{b: v}
	for s.open(); s.more(); {
		each(s.value())
	}
}

// enter takes apart the object nested in field f of a; its own faults are told by leave.
func (o *answer) enter(a *answer, f field, tok []byte) {
	if len(tok) == 0 || !o.collect(tok) {
		a.fail(f, "an object")
	}
}

// leave makes the fault of a nested object that of a.
func (o *answer) leave(a *answer) {
	if a.err == nil {
		a.err = o.err
	}
}
