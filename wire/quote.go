package wire

import "unicode/utf8"

// quote appends s as a JSON string and escapes nothing that JSON does not require: the quotation mark, the backslash and
// the control characters below U+0020. <, >, &, U+2028 and everything else go out as they are. It is written here since
// jsontext.AppendQuote copies a string before it looks at it. Invalid UTF-8, which no decoder lets in, becomes U+FFFD:
// a frame that is no UTF-8 would close the socket.
func quote[S ~string](b []byte, s S) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:]))
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		i++
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i-1]...)
		from = i
		b = escape(b, c)
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

func escape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	default:
		const hex = "0123456789abcdef"
		return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
}
