package posthorn

import (
	"strings"
	"unicode/utf8"
)

// CheckID holds the rule of every id (conversation, user, device, cmid, rid): 1 to limit bytes of valid UTF-8 without
// U+0000. Ids are compared as exact bytes. The bound is what keeps a legal send from failing by its notification.
func CheckID(field, id string, limit int) error {
	switch {
	case id == "":
		return Errorf(CodeBadFrame, "%s must not be empty", field)
	case len(id) > limit:
		return Errorf(CodeBadFrame, "%s is longer than %d bytes", field, limit)
	}
	return CheckText(field, id)
}

// CheckText holds the rule of every string: what PostgreSQL's text cannot hold is refused before it gets there.
func CheckText(field, s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return Errorf(CodeBadFrame, "%s contains U+0000", field)
	}
	if !utf8.ValidString(s) {
		return Errorf(CodeBadFrame, "%s is not valid UTF-8", field)
	}
	return nil
}

// MaxSeq bounds sequence numbers, so that they survive a JavaScript number. A CHECK in the tables holds it too.
const MaxSeq = int64(1)<<53 - 1
