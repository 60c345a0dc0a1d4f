package api

import (
	"bytes"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/posthorn/posthorn"
)

// wrong is what is wrong with a field, as a sentence that goes on from its name.
type wrong string

func (w wrong) Error() string { return string(w) }

// field is a value of a body that may be absent. null is neither a value nor absence: a client that sends it has lost
// something.
type field[T any] struct {
	val T
	set bool
}

// UnmarshalJSONFrom reads the value.
func (f *field[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == jsontext.KindNull {
		return wrong("must not be null")
	}
	f.set = true
	return json.UnmarshalDecode(d, &f.val)
}

// Schema is the value's.
func (field[T]) Schema(r huma.Registry) *huma.Schema {
	s := *r.Schema(reflect.TypeFor[T](), true, "")
	s.Nullable = false
	return &s
}

// number is a non-negative integer that survives JavaScript.
type number int64

// UnmarshalJSONFrom takes plain digits only; encoding by way of a float would round, and -0 would pass for 0.
func (n *number) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	i, ok := digits(v)
	if !ok {
		return wrong("must be " + plainDigits)
	}
	*n = number(i)
	return nil
}

// Schema of the plain digits.
func (number) Schema(huma.Registry) *huma.Schema { return seqSchema() }

// object is a JSON object in the bytes that came.
type object []byte

// UnmarshalJSONFrom keeps the bytes: numbers, order and spaces are the sender's own.
func (o *object) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	if v.Kind() != jsontext.KindBeginObject {
		return wrong("must be an object")
	}
	*o = bytes.Clone(v)
	return nil
}

// Schema is any object.
func (object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// id is a required id.
func (c *call) id(name string, f field[string]) error {
	if !f.set {
		return posthorn.Errorf(posthorn.CodeBadFrame, "%s is missing", name)
	}
	return c.optID(name, f)
}

// optID is an id that may be absent; where it came it must not be empty.
func (c *call) optID(name string, f field[string]) error {
	if !f.set {
		return nil
	}
	return posthorn.CheckID(name, f.val, c.limits.IDBytes)
}

// text is within limit bytes; its characters are known to be sound.
func (c *call) text(name string, f field[string], limit int) error {
	if len(f.val) > limit {
		return posthorn.Errorf(posthorn.CodeTooLarge, "%s is longer than %d bytes", name, limit)
	}
	return nil
}

// people is a list of users in the order of first mention, each once.
func (c *call) people(name string, f field[[]string]) ([]string, error) {
	var users []string
	seen := make(map[string]struct{})
	for _, u := range f.val {
		if err := posthorn.CheckID("a user in "+name, u, c.limits.IDBytes); err != nil {
			return nil, err
		}
		if _, again := seen[u]; again {
			continue
		}
		if len(users) == c.limits.AddUsers {
			return nil, posthorn.Errorf(posthorn.CodeTooLarge, "%s names more than %d people", name, c.limits.AddUsers)
		}
		seen[u] = struct{}{}
		users = append(users, u)
	}
	return users, nil
}

// given is the pointer form of a field: nil where it is absent.
func given[T any](f field[T]) *T {
	if !f.set {
		return nil
	}
	return &f.val
}
