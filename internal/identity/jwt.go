package identity

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/posthorn/posthorn"
)

// Leeway is how far an issuer's clock may differ from ours when exp and nbf are judged.
const Leeway = 30 * time.Second

// JWTConfig names whose JWTs are accepted. HS256 may stand beside one of EdDSA and JWKS.
type JWTConfig struct {
	// HS256 is a secret shared with the issuer, at least 32 bytes.
	HS256 []byte
	// EdDSA is the issuer's public key; see ParseEdDSA.
	EdDSA ed25519.PublicKey
	// JWKS is the issuer's set of public keys; see NewJWKS.
	JWKS *JWKS
	// Issuer and Audience are compared with iss and aud where they are set.
	Issuer   string
	Audience string
}

// algorithms of public keys that a JWKS may hold; see algorithmsOf for which key each of them takes.
var setAlgorithms = []string{"EdDSA", "ES256", "ES384", "RS256", "PS256"}

// verifier holds the allow-list: which algorithms are accepted at all, and which key each of them is checked with.
type verifier struct {
	cfg    JWTConfig
	parser *jwt.Parser
	claims *jwt.Validator
	limits posthorn.Limits
}

func newVerifier(cfg JWTConfig, now func() time.Time) (*verifier, error) {
	var algs []string
	if len(cfg.HS256) > 0 {
		if len(cfg.HS256) < 32 {
			return nil, errors.New("the HS256 secret must have at least 32 bytes")
		}
		algs = append(algs, "HS256")
	}
	switch {
	case len(cfg.EdDSA) > 0 && cfg.JWKS != nil:
		return nil, errors.New("either an EdDSA key or a JWKS, not both: put the key into the set")
	case len(cfg.EdDSA) > 0 && len(cfg.EdDSA) != ed25519.PublicKeySize:
		return nil, errors.New("the EdDSA key is no Ed25519 public key")
	case len(cfg.EdDSA) > 0:
		algs = append(algs, "EdDSA")
	case cfg.JWKS != nil:
		algs = append(algs, setAlgorithms...)
	}
	if len(algs) == 0 {
		return nil, nil
	}
	opts := []jwt.ParserOption{jwt.WithValidMethods(algs), jwt.WithStrictDecoding(), jwt.WithExpirationRequired(),
		jwt.WithLeeway(Leeway), jwt.WithTimeFunc(now)}
	if cfg.Issuer != "" {
		opts = append(opts, jwt.WithIssuer(cfg.Issuer))
	}
	if cfg.Audience != "" {
		opts = append(opts, jwt.WithAudience(cfg.Audience))
	}
	return &verifier{cfg: cfg, parser: jwt.NewParser(opts...), claims: jwt.NewValidator(opts...), limits: posthorn.DefaultLimits()}, nil
}

// verify judges a JWT. Claims are read by their exact names: a map, unlike a struct, takes no "SUB" for "sub".
func (v *verifier) verify(ctx context.Context, token string) (Device, error) {
	var ours error // what key says in our own words; the library wraps it into its own
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (key any, err error) {
		key, ours = v.key(ctx, t)
		return key, ours
	})
	switch {
	case ours != nil:
		return Device{}, ours
	case errors.Is(err, jwt.ErrTokenSignatureInvalid) || errors.Is(err, jwt.ErrTokenMalformed) || errors.Is(err, jwt.ErrTokenUnverifiable):
		return Device{}, refused("the token is not valid")
	case err != nil:
		return Device{}, claimsRefused(err)
	}
	user, _ := claims["sub"].(string)
	device, _ := claims["device"].(string)
	if posthorn.CheckID("sub", user, v.limits.IDBytes) != nil {
		return Device{}, refused("the token's sub must name a user: 1 to 128 bytes of text")
	}
	if posthorn.CheckID("device", device, v.limits.IDBytes) != nil {
		return Device{}, refused("the token's device must name a device: 1 to 128 bytes of text")
	}
	return Device{User: user, Device: device}, nil
}

// key chooses by the algorithm, which the parser has found in the allow-list, from a source that holds no other type of
// key: a public key never serves as an HMAC secret.
func (v *verifier) key(ctx context.Context, t *jwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, refused("the token has critical headers, and none is understood")
	}
	alg := t.Method.Alg()
	if alg == "HS256" {
		return v.cfg.HS256, nil
	}
	if v.cfg.JWKS == nil {
		return v.cfg.EdDSA, nil
	}
	// A token whose own claims refuse it is not worth a fetch.
	if err := v.claims.Validate(t.Claims); err != nil {
		return nil, claimsRefused(err)
	}
	kid, ok := t.Header["kid"].(string)
	if _, has := t.Header["kid"]; has && (!ok || kid == "" || len(kid) > v.limits.IDBytes) {
		return nil, refused("the token's kid is not valid")
	}
	if !slices.Contains(setAlgorithms, alg) {
		return nil, refused("the token is not valid")
	}
	return v.cfg.JWKS.find(ctx, kid, alg)
}

func claimsRefused(err error) error {
	for _, c := range []struct {
		is   error
		text string
	}{
		{jwt.ErrTokenExpired, "the token has expired"},
		{jwt.ErrTokenNotValidYet, "the token is not valid yet"},
		{jwt.ErrTokenRequiredClaimMissing, "the token lacks a required claim: exp, and iss and aud where they are configured"},
		{jwt.ErrTokenInvalidIssuer, "the token is of another issuer"},
		{jwt.ErrTokenInvalidAudience, "the token is for another audience"},
	} {
		if errors.Is(err, c.is) {
			return refused(c.text)
		}
	}
	return refused("the token's claims are not valid")
}
