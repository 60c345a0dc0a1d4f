package api

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/posthorn/posthorn"
)

// decode reads a request's body into the struct that describes it, as strictly as a frame: names are exact, no field is
// repeated at any depth, no string is anything but valid Unicode without U+0000, nothing is nested too deep. Fields that
// the struct does not have are ignored. What came is never quoted back.
func decode(body []byte, into any, depth int) error {
	if err := strict(body, depth); err != nil {
		return err
	}
	err := json.Unmarshal(body, into)
	if err == nil {
		return nil
	}
	field, text := "the body", "is not of the right type"
	var se *json.SemanticError
	if errors.As(err, &se) && se.JSONPointer != "" {
		field = strings.ReplaceAll(strings.TrimPrefix(string(se.JSONPointer), "/"), "/", ".")
	}
	var w wrong
	if errors.As(err, &w) {
		text = string(w)
	}
	return posthorn.Errorf(posthorn.CodeBadFrame, "%s %s", field, text)
}

// strict walks the whole body, data and unknown fields too.
func strict(body []byte, depth int) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	for n := 0; ; n++ {
		closed := n > 0 && d.StackDepth() == 0
		tok, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF) && closed:
			return nil
		case closed:
			return posthorn.Errorf(posthorn.CodeBadFrame, "something follows the body's object")
		case err != nil:
			return grammar(err, body)
		case n == 0 && tok.Kind() != jsontext.KindBeginObject:
			return posthorn.Errorf(posthorn.CodeBadFrame, "the body must be one JSON object")
		case d.StackDepth() > depth:
			return posthorn.Errorf(posthorn.CodeBadFrame, "the body is nested deeper than %d", depth)
		case tok.Kind() == jsontext.KindString && strings.IndexByte(tok.String(), 0) >= 0:
			return posthorn.Errorf(posthorn.CodeBadFrame, "the body contains U+0000")
		}
	}
}

// grammar says in few words why a body is no JSON.
func grammar(err error, body []byte) error {
	var at int64
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		at = syntax.ByteOffset
	}
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return posthorn.Errorf(posthorn.CodeBadFrame, "the body must be one JSON object")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return posthorn.Errorf(posthorn.CodeBadFrame, "a field is repeated at byte %d", at)
	case !utf8.Valid(body):
		return posthorn.Errorf(posthorn.CodeBadFrame, "the body is not valid UTF-8")
	}
	return posthorn.Errorf(posthorn.CodeBadFrame, "the body is not valid JSON at byte %d", at)
}
