package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// The prefixes tell people, and scanners for leaked secrets, what they have found.
const (
	tokenPrefix = "pht_"
	keyPrefix   = "phk_"
)

// secretBytes of randomness stand in every token and key: so many that a plain hash keeps them safe at rest.
const secretBytes = 32

// newSecret makes a token or key and the hash under which it is stored.
func newSecret(prefix string) (text string, hash [32]byte) {
	text = prefix + randomText(secretBytes)
	return text, sha256.Sum256([]byte(text))
}

// randomText is n random bytes in base64url. crypto/rand.Read never fails: it ends the process rather than give less.
func randomText(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// WeakAdminKey tells whether an admin key is short enough to be guessed; the program warns at start, it does not refuse.
func WeakAdminKey(key string) bool { return len(key) < 32 }
