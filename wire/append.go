package wire

import "strconv"

// Append encodes a frame of either direction behind b, in the field order of protocol.md. Fields without a value are
// absent, numbers that a reader lives by are there even where they are 0. data goes out as the bytes that it is, so it
// must be JSON. A frame that is none of this package's adds nothing.
func Append(b []byte, f Frame) []byte {
	switch f := f.(type) {
	case *Event:
		return AppendEvent(b, &f.Ev, f.Prev)
	case *Sent:
		return appendSent(b, f)
	case *Acked:
		b = open(b, "acked", f.RID)
		b = str(b, `,"conv":`, f.Conv)
		return append(num(b, `,"delivered":`, f.Delivered), '}')
	case *Page:
		b = open(b, "page", f.RID)
		return append(appendPage(append(b, ','), &f.Page), '}')
	case *Conv:
		b = append(open(b, "conv", ""), `,"entry":`...)
		return append(AppendEntry(b, &f.Entry), '}')
	case *Hint:
		b = open(b, "hint", "")
		b = str(b, `,"conv":`, f.Conv)
		b = num(b, `,"head":`, f.Head)
		b = num(b, `,"rv":`, f.RV)
		return append(optStr(b, `,"why":`, f.Why), '}')
	case *Error:
		b = open(b, "error", f.RID)
		b = str(b, `,"code":`, f.Code)
		b = str(b, `,"msg":`, f.Msg)
		return append(optNum(b, `,"retry_ms":`, f.RetryMS), '}')
	case *Bye:
		b = open(b, "bye", "")
		b = str(b, `,"code":`, f.Code)
		return append(num(b, `,"reconnect_ms":`, f.ReconnectMS), '}')
	case *Unknown:
		return append(open(b, f.T, ""), '}')
	case *Welcome, *Confirmed, *Subbed, *Opened, *MemberList, *Pong:
		return appendReply(b, f)
	default:
		return appendRequest(b, f)
	}
}

// open begins a frame: t, and rid where there is one.
func open(b []byte, t, rid string) []byte {
	b = quote(append(b, `{"t":`...), t)
	return optStr(b, `,"rid":`, rid)
}

// The helpers take a field's key as it stands in the frame, with its comma and colon, so that a line of an encoder reads
// like what it writes.

func str[S ~string](b []byte, key string, s S) []byte { return quote(append(b, key...), s) }

func optStr[S ~string](b []byte, key string, s S) []byte {
	if s == "" {
		return b
	}
	return str(b, key, s)
}

func num(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), n, 10)
}

func optNum(b []byte, key string, n int64) []byte {
	if n == 0 {
		return b
	}
	return num(b, key, n)
}

func ptrNum(b []byte, key string, n *int64) []byte {
	if n == nil {
		return b
	}
	return num(b, key, *n)
}

func flag(b []byte, key string, on bool) []byte {
	return strconv.AppendBool(append(b, key...), on)
}

// strs writes a list of strings, [] where it is empty.
func strs(b []byte, key string, list []string) []byte {
	b = append(append(b, key...), '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = quote(b, s)
	}
	return append(b, ']')
}
