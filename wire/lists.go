package wire

import (
	"slices"

	"github.com/posthorn/posthorn"
)

// array gives the scan of a value that must be a list, stepped into; false where it is none.
func (r *request) array(name string, tok []byte) (scan, bool) {
	if tok[0] != '[' {
		r.bad(name, "a list")
		return scan{}, false
	}
	s := scan{b: tok}
	s.open()
	return s, true
}

// people is a list of users in the order of first mention, each once. It is bounded after folding: what costs is how
// many people come or go, and the list's bytes are bounded by the frame.
func (r *request) people(f field) []string {
	if !r.has(f) {
		return nil
	}
	s, ok := r.array(f.String(), r.val[f])
	if !ok {
		return nil
	}
	var users []string
	seen := make(map[string]struct{})
	for s.more() {
		u := r.checkID("a user in "+f.String(), s.value(), r.lim.IDBytes)
		if r.err != nil {
			return nil
		}
		if _, ok := seen[u]; ok {
			continue
		}
		if len(users) == r.lim.AddUsers {
			r.fail(posthorn.CodeTooLarge, "%s names more than %d people", f, r.lim.AddUsers)
			return nil
		}
		seen[u] = struct{}{}
		users = append(users, u)
	}
	return users
}

// someUsers is whom an add or remove names: users, user, or both; at least one.
func (r *request) someUsers() []string {
	users := r.people(fUsers)
	if one := r.optID(fUser, r.lim.IDBytes); one != "" && !slices.Contains(users, one) {
		users = append(users, one)
	}
	switch {
	case len(users) == 0:
		r.fail(posthorn.CodeBadFrame, "users is missing")
	case len(users) > r.lim.AddUsers:
		r.fail(posthorn.CodeTooLarge, "users names more than %d people", r.lim.AddUsers)
	}
	return users
}

// pairs is [[seq,mid],…] of confirm.
func (r *request) pairs() []posthorn.Pair {
	if !r.need(fPairs) {
		return nil
	}
	s, ok := r.array("pairs", r.val[fPairs])
	if !ok {
		return nil
	}
	var pairs []posthorn.Pair
	for s.more() {
		if len(pairs) == r.lim.ConfirmPairs {
			r.fail(posthorn.CodeBadFrame, "pairs has more than %d", r.lim.ConfirmPairs)
			return nil
		}
		pairs = append(pairs, r.pair(s.value()))
		if r.err != nil {
			return nil
		}
	}
	if len(pairs) == 0 {
		r.bad("pairs", "a list of at least one")
	}
	return pairs
}

func (r *request) pair(tok []byte) posthorn.Pair {
	s, ok := r.array("each of pairs", tok)
	if !ok {
		return posthorn.Pair{}
	}
	var parts [2][]byte
	n := 0
	for ; s.more(); n++ {
		if v := s.value(); n < len(parts) {
			parts[n] = v
		}
	}
	if n != len(parts) {
		r.bad("each of pairs", "[seq, mid]")
		return posthorn.Pair{}
	}
	return posthorn.Pair{Seq: r.number("seq in pairs", parts[0]), Mid: r.checkID("mid in pairs", parts[1], r.lim.IDBytes)}
}
