package bell

import (
	"strings"
	"testing"
)

func TestPayloadKinds(t *testing.T) {
	for payload, want := range map[string]payloadKind{
		"c:1": rings, "c-1:2\nb:3": rings, "a:b:7": rings, "c:9007199254740991": rings, "🙂:5": rings,
		proofPrefix + "5f1c": proof,
		"":                   junk, "x": junk, "c-ab:-1": junk, "c-ab:99999999999999999999": junk, "c:9007199254740992": junk, "c:": junk, ":": junk,
		"c:01": junk, "c:1 ": junk, "c:0x1": junk, "c:0\nx": junk,
		"a\nb:5": rings, "c:1\na\nb:5": rings, "a\n:5": rings, // ids with newlines, alone and in a batch
		proofPrefix + "a:1": rings, strings.Repeat("\xff", 7999): junk,
	} {
		if got := kindOf(payload); got != want {
			t.Errorf("%.40q is %d, want %d", payload, got, want)
		}
	}
}

func FuzzPayload(f *testing.F) {
	f.Add("c:1\nb:2")
	f.Add(proofPrefix + "x")
	f.Add("a\nb:5")
	f.Fuzz(func(t *testing.T, payload string) {
		good := false
		for _, line := range strings.Split(payload, "\n") {
			_, seq, ok := cutLast(line)
			good = good || ok && isSeq(seq)
		}
		if got := kindOf(payload); good != (got == rings) {
			t.Fatalf("%q is %d", payload, got)
		}
	})
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndex(s, ":")
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
