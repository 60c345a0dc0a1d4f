package bell

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckChannel refuses a channel name that LISTEN and pg_notify would not take alike: PostgreSQL cuts a longer one with
// nothing but a notice on the one side and refuses it on the other, so that two names could become one.
func CheckChannel(name string) error {
	switch {
	case name == "" || len(name) > 63:
		return fmt.Errorf("a channel name has 1 to 63 bytes, this one has %d: PostgreSQL would cut it and listen to another", len(name))
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return errors.New("a channel name is valid UTF-8 without U+0000")
	}
	return nil
}
