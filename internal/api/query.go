package api

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/posthorn/posthorn"
)

// path is an id from the path.
func (c *call) path(name string) string { return c.r.PathValue(name) }

// seq is a sequence number from the query, and whether it came.
func (c *call) seq(name string) (n int64, ok bool, err error) {
	if !c.query.Has(name) {
		return 0, false, nil
	}
	v := c.query.Get(name)
	if n, ok = digits([]byte(v)); !ok || (v[0] == '0' && len(v) > 1) {
		return 0, false, posthorn.Errorf(posthorn.CodeBadFrame, "%s must be %s", name, plainDigits)
	}
	return n, true, nil
}

// limit is how many items are wanted: a default where it is absent, never above the maximum.
func (c *call) limit() (int, error) {
	if !c.query.Has("limit") {
		return c.limits.PageDefault, nil
	}
	v, n := c.query.Get("limit"), 0
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' || (i == 0 && v[i] == '0') {
			n = 0
			break
		}
		n = min(n*10+int(v[i]-'0'), c.limits.PageEvents)
	}
	if n < 1 {
		return 0, posthorn.Errorf(posthorn.CodeBadFrame, "limit must be a whole number from 1, in plain digits")
	}
	return n, nil
}

// maxOpaque bounds what is given back to the server as it came from it.
const maxOpaque = 512

// opaque is a place in a list, or "" for its beginning.
func (c *call) opaque(name string) (string, error) {
	v := c.query.Get(name)
	if len(v) > maxOpaque {
		return "", posthorn.Errorf(posthorn.CodeBadFrame, "%s is longer than %d bytes", name, maxOpaque)
	}
	return v, posthorn.CheckText(name, v)
}

// listed gives what every list is asked by.
func (c *call) listed() (after string, limit int, err error) {
	if after, err = c.opaque("after"); err != nil {
		return "", 0, err
	}
	limit, err = c.limit()
	return after, limit, err
}

// digits reads plain digits up to 2^53-1: no sign, fraction, exponent or larger number is ever rounded (B14, B72).
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

const plainDigits = "an integer from 0 to 9007199254740991, in plain digits"

func seqSchema() *huma.Schema {
	least, most := 0.0, float64(posthorn.MaxSeq)
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &least, Maximum: &most}
}

func limitSchema() *huma.Schema {
	least := 1.0
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &least}
}

func textSchema() *huma.Schema { return &huma.Schema{Type: huma.TypeString} }

// paged are the parameters of every list.
func paged() []param {
	return []param{
		{"after", "Where to go on: the `next` of the page before.", textSchema},
		{"limit", "How many, 100 by default; above 500 it counts as 500.", limitSchema},
	}
}
