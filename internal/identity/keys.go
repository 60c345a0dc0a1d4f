package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"

	"github.com/MicahParks/jwkset"
)

// publicKey is one usable key of a set, with the only algorithms it is checked with.
type publicKey struct {
	kid  string
	algs []string
	key  any
}

// minRSABits is RFC 7518's bound for RS256 and PS256.
const minRSABits = 2048

// algorithmsOf ties a key to its algorithms by its type, then by what the set declares for it.
func algorithmsOf(key any, declared string) []string {
	var algs []string
	switch k := key.(type) {
	case ed25519.PublicKey:
		algs = []string{"EdDSA"}
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			algs = []string{"ES256"}
		case elliptic.P384():
			algs = []string{"ES384"}
		}
	case *rsa.PublicKey:
		if k.N.BitLen() >= minRSABits {
			algs = []string{"RS256", "PS256"}
		}
	}
	if declared != "" {
		algs = slices.DeleteFunc(algs, func(a string) bool { return a != declared })
	}
	return algs
}

// parseSet reads a JWK set. Keys that are of no use here (symmetric, for encryption, of other types, damaged) are left
// out, so that one of them does not lock everybody out; a set without any usable key is an error.
func parseSet(text []byte) ([]publicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New("no JWK set")
	}
	var keys []publicKey
	for _, raw := range set.Keys {
		if k, ok := parseJWK(raw); ok {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the JWK set holds no key for EdDSA, ES256, ES384, RS256 or PS256")
	}
	return keys, nil
}

func parseJWK(raw json.RawMessage) (publicKey, bool) {
	var m jwkset.JWKMarshal
	if json.Unmarshal(raw, &m) != nil {
		return publicKey{}, false
	}
	// x5u would name another place to read from; the library does not follow it unless told to, and it is not told.
	m.X5U = ""
	if m.USE != "" && m.USE != jwkset.UseSig {
		return publicKey{}, false
	}
	if len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify) {
		return publicKey{}, false
	}
	k, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return publicKey{}, false
	}
	algs := algorithmsOf(k.Key(), m.ALG.String())
	return publicKey{kid: m.KID, algs: algs, key: k.Key()}, len(algs) > 0
}

// ParseEdDSA reads an Ed25519 public key: PEM (PKIX, "PUBLIC KEY") or one JWK.
func ParseEdDSA(text []byte) (ed25519.PublicKey, error) {
	if block, _ := pem.Decode(text); block != nil {
		if block.Type != "PUBLIC KEY" {
			return nil, errors.New("the PEM block must be a PUBLIC KEY")
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if ed, ok := key.(ed25519.PublicKey); ok && err == nil {
			return ed, nil
		}
		return nil, errors.New("the PEM block is no Ed25519 public key")
	}
	if k, ok := parseJWK(text); ok {
		if ed, ok := k.key.(ed25519.PublicKey); ok {
			return ed, nil
		}
	}
	return nil, errors.New("neither a PEM public key nor a JWK of an Ed25519 public key")
}
