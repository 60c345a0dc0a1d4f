package wire

// scan walks JSON whose grammar jsontext has already judged. It therefore checks nothing and finds its way by the few
// bytes that can stand where it looks. It allocates nothing, which a second run of jsontext would.
type scan struct {
	b       []byte
	i       int
	depth   int  // how many objects and arrays are open
	deepest int  // the greatest depth met
	nul     bool // some string, name or value, at any depth, holds \u0000
}

func (s *scan) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// open steps into the object or array that comes next.
func (s *scan) open() {
	s.space()
	s.i++
	s.depth++
	s.deepest = max(s.deepest, s.depth)
}

// more moves to the next member or element; at the end it steps out and says false.
func (s *scan) more() bool {
	s.space()
	if s.b[s.i] == ',' {
		s.i++
		s.space()
	}
	if c := s.b[s.i]; c == '}' || c == ']' {
		s.i++
		s.depth--
		return false
	}
	return true
}

// name reads a member's name with its quotes and steps over the colon.
func (s *scan) name() []byte {
	n := s.str()
	s.space()
	s.i++
	return n
}

// value reads the next value whole, exactly the bytes that came.
func (s *scan) value() []byte {
	s.space()
	start := s.i
	switch s.b[s.i] {
	case '"':
		return s.str()
	case '{', '[':
		s.nest()
	default:
		s.literal()
	}
	return s.b[start:s.i:s.i]
}

// nest steps over an object or array.
func (s *scan) nest() {
	for base := s.depth; ; {
		switch s.b[s.i] {
		case '"':
			s.str()
			continue
		case '{', '[':
			s.depth++
			s.deepest = max(s.deepest, s.depth)
		case '}', ']':
			s.depth--
		}
		s.i++
		if s.depth == base {
			return
		}
	}
}

// literal steps over a number, true, false or null.
func (s *scan) literal() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return
		}
		s.i++
	}
}

// str reads a string with its quotes. A raw U+0000 is no JSON; the only other way to write it is the escape.
func (s *scan) str() []byte {
	start := s.i
	i := start + 1
	for s.b[i] != '"' {
		if s.b[i] != '\\' {
			i++
			continue
		}
		if s.b[i+1] == 'u' && string(s.b[i+2:i+6]) == "0000" {
			s.nul = true
		}
		i += 2
	}
	s.i = i + 1
	return s.b[start:s.i:s.i]
}
