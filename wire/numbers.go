package wire

import (
	"strconv"

	"github.com/posthorn/posthorn"
)

// digits reads a number that a client sent: plain digits up to 2^53-1. A sign (-0 too), a fraction, an exponent and
// anything larger is no number here, so that nothing is ever rounded or wrapped (B14, B72). Leading zeros are no JSON.
func digits(tok []byte) (int64, bool) {
	if len(tok) == 0 || len(tok) > len("9007199254740991") {
		return 0, false
	}
	var n int64
	for _, c := range tok {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, n <= posthorn.MaxSeq
}

// exact reads a number that a server sent: any integer that fits 64 bits, digit by digit, never by way of a float.
func exact(tok []byte) (int64, bool) {
	if n, ok := digits(tok); ok {
		return n, true
	}
	n, err := strconv.ParseInt(string(tok), 10, 64)
	return n, err == nil
}

// integer is a required sequence number or cursor. Null and missing are refused: neither may act as 0 (B14).
func (r *request) integer(f field) int64 {
	if !r.need(f) {
		return 0
	}
	return r.optInteger(f)
}

// optInteger is 0 where the field is absent.
func (r *request) optInteger(f field) int64 {
	if !r.has(f) {
		return 0
	}
	return r.number(f.String(), r.val[f])
}

// integerPtr tells an absent field from 0.
func (r *request) integerPtr(f field) *int64 {
	if !r.has(f) {
		return nil
	}
	n := r.optInteger(f)
	return &n
}

// positive is an optional integer whose absence is told by 0, so that a 0 that was sent must not pass for it.
func (r *request) positive(f field) int64 {
	n := r.optInteger(f)
	if r.has(f) && n < 1 {
		r.bad(f.String(), "1 or more")
	}
	return n
}

// limit is how many items a page may have: 0 where absent, never above the maximum.
func (r *request) limit() int {
	return int(min(r.positive(fLimit), int64(r.lim.PageEvents)))
}

func (r *request) number(name string, tok []byte) int64 {
	n, ok := digits(tok)
	if !ok {
		r.bad(name, "an integer from 0 to 9007199254740991, in plain digits")
	}
	return n
}
