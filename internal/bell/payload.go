package bell

import "strings"

// Payloads. A bell is lines of conv:seq, split at the last colon; a proof has no colon. Neither is trusted: the one wakes,
// the other is waited for by who sent it.

const proofPrefix = "proof "

type payloadKind int

const (
	junk payloadKind = iota
	rings
	proof
)

// kindOf tells what a payload is. One good line makes a bell: an id may hold newlines, so that a legal payload may have lines
// that look broken; and a bell too many costs a look, one too few the time of a poll.
func kindOf(payload string) payloadKind {
	if strings.HasPrefix(payload, proofPrefix) && !strings.Contains(payload, ":") {
		return proof
	}
	for line := range strings.SplitSeq(payload, "\n") {
		if at := strings.LastIndexByte(line, ':'); at >= 0 && isSeq(line[at+1:]) {
			return rings
		}
	}
	return junk
}

// isSeq: a decimal from 1 to 2^53-1, as it is written.
func isSeq(s string) bool {
	if s == "" || len(s) > 16 || s[0] == '0' {
		return false
	}
	var n uint64
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
		n = 10*n + uint64(c-'0')
	}
	return n < 1<<53
}
