package identity

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/posthorn/posthorn"
)

var secret = []byte("a shared secret of at least 32 bytes")

type m = jwt.MapClaims

// good are claims that everything accepts.
func good(over m) m {
	c := m{"sub": "anna", "device": "phone", "exp": start.Add(time.Hour).Unix()}
	for k, v := range over {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

func sign(t *testing.T, method jwt.SigningMethod, key any, header map[string]any, claims m) string {
	t.Helper()
	tok := jwt.NewWithClaims(method, claims)
	for k, v := range header {
		tok.Header[k] = v
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func edKey(t *testing.T) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pub, priv
}

func pemOf(t *testing.T, pub crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func TestJWTClaims(t *testing.T) {
	a := newAuth(t, Config{Store: newMemory(), Now: newClock().now, JWT: JWTConfig{HS256: secret, Issuer: "app", Audience: "posthorn"}})
	base := m{"iss": "app", "aud": "posthorn"}
	for name, c := range map[string]struct {
		over m
		ok   bool
	}{
		"good":                     {m{}, true},
		"one audience of two":      {m{"aud": []string{"x", "posthorn"}}, true},
		"just expired, in leeway":  {m{"exp": start.Add(-29 * time.Second).Unix()}, true},
		"not yet, in leeway":       {m{"nbf": start.Add(29 * time.Second).Unix()}, true},
		"expired":                  {m{"exp": start.Add(-31 * time.Second).Unix()}, false},
		"not yet":                  {m{"nbf": start.Add(31 * time.Second).Unix()}, false},
		"no exp":                   {m{"exp": nil}, false},
		"exp 0":                    {m{"exp": 0}, false},
		"exp as text":              {m{"exp": "2099-01-01"}, false},
		"no sub":                   {m{"sub": nil}, false},
		"empty sub":                {m{"sub": ""}, false},
		"sub is a number":          {m{"sub": 7}, false},
		"sub under another case":   {m{"sub": nil, "SUB": "anna"}, false},
		"NUL in sub":               {m{"sub": "a\x00b"}, false},
		"long sub":                 {m{"sub": strings.Repeat("a", 129)}, false},
		"no device":                {m{"device": nil}, false},
		"empty device":             {m{"device": ""}, false},
		"device is a list":         {m{"device": []string{"phone"}}, false},
		"NUL in device":            {m{"device": "\x00"}, false},
		"other issuer":             {m{"iss": "else"}, false},
		"no issuer":                {m{"iss": nil}, false},
		"issuer of another case":   {m{"iss": "App"}, false},
		"other audience":           {m{"aud": "else"}, false},
		"no audience":              {m{"aud": nil}, false},
		"audience only looks like": {m{"aud": "posthorn2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claims := good(base)
			for k, v := range c.over {
				if claims[k] = v; v == nil {
					delete(claims, k)
				}
			}
			token := sign(t, jwt.SigningMethodHS256, secret, nil, claims)
			d, err := a.Device(t.Context(), token)
			if !c.ok {
				wantCode(t, err, posthorn.CodeUnauthenticated, token)
				return
			}
			wantCode(t, err, "")
			if d != (Device{User: "anna", Device: "phone"}) {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// TestJWTConfusion: no token is judged by a key of another kind than its algorithm's.
func TestJWTConfusion(t *testing.T) {
	pub, priv := edKey(t)
	_, otherPriv := edKey(t)
	hs := JWTConfig{HS256: secret}
	ed := JWTConfig{EdDSA: pub}
	both := JWTConfig{HS256: secret, EdDSA: pub}
	hs256 := func(key []byte) string { return sign(t, jwt.SigningMethodHS256, key, nil, good(nil)) }
	eddsa := sign(t, jwt.SigningMethodEdDSA, priv, nil, good(nil))
	unsigned := sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, good(nil))
	for name, c := range map[string]struct {
		cfg   JWTConfig
		token string
		ok    bool
	}{
		"HS256":                          {hs, hs256(secret), true},
		"EdDSA":                          {ed, eddsa, true},
		"HS256 beside EdDSA":             {both, hs256(secret), true},
		"EdDSA beside HS256":             {both, eddsa, true},
		"no JWT configured":              {JWTConfig{}, hs256(secret), false},
		"HS256 with another secret":      {hs, hs256([]byte(strings.Repeat("x", 32))), false},
		"HS256 with the EdDSA key":       {ed, hs256(pub), false},
		"HS256 with the EdDSA key, both": {both, hs256(pub), false},
		"HS256 with the EdDSA key's PEM": {both, hs256(pemOf(t, pub)), false},
		"HS256 where only EdDSA":         {ed, hs256(secret), false},
		"EdDSA where only HS256":         {hs, eddsa, false},
		"EdDSA with another key":         {ed, sign(t, jwt.SigningMethodEdDSA, otherPriv, nil, good(nil)), false},
		"HS384":                          {hs, sign(t, jwt.SigningMethodHS384, secret, nil, good(nil)), false},
		"HS512":                          {hs, sign(t, jwt.SigningMethodHS512, secret, nil, good(nil)), false},
		"none":                           {both, unsigned, false},
		"None":                           {both, withHeader(t, unsigned, map[string]any{"alg": "None"}), false},
		"none on a signed token":         {both, withHeader(t, eddsa, map[string]any{"alg": "none"}), false},
		"no alg":                         {both, withHeader(t, eddsa, map[string]any{"typ": "JWT"}), false},
		"alg is a number":                {both, withHeader(t, eddsa, map[string]any{"alg": 7}), false},
		"alg relabelled HS256":           {both, withHeader(t, eddsa, map[string]any{"alg": "HS256"}), false},
		"critical header":                {ed, sign(t, jwt.SigningMethodEdDSA, priv, map[string]any{"crit": []string{"b64"}}, good(nil)), false},
		"key in the header":              {ed, sign(t, jwt.SigningMethodEdDSA, otherPriv, map[string]any{"jwk": jwkOf(t, otherPriv.Public(), "x", nil), "jku": "https://evil.example/keys"}, good(nil)), false},
		"signature cut off":              {ed, eddsa[:strings.LastIndexByte(eddsa, '.')+1], false},
		"signature changed":              {ed, eddsa[:len(eddsa)-4] + "AAAA", false},
		"padding":                        {ed, eddsa + "=", false},
		"four parts":                     {ed, eddsa + ".x", false},
		"header is no JSON":              {ed, "e30x." + eddsa[strings.IndexByte(eddsa, '.')+1:], false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuth(t, Config{Store: newMemory(), Now: newClock().now, JWT: c.cfg})
			_, err := a.Bearer(t.Context(), "Bearer "+c.token)
			if c.ok {
				wantCode(t, err, "")
			} else {
				wantCode(t, err, posthorn.CodeUnauthenticated, c.token)
			}
		})
	}
}

// withHeader puts another header before a token's claims and signature.
func withHeader(t *testing.T, token string, header map[string]any) string {
	t.Helper()
	b, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(b) + token[strings.IndexByte(token, '.'):]
}

func TestJWTRevokedDevice(t *testing.T) {
	store := newMemory()
	a := newAuth(t, Config{Store: store, Now: newClock().now, JWT: JWTConfig{HS256: secret}})
	token := sign(t, jwt.SigningMethodHS256, secret, nil, good(nil))
	_, err := a.Device(t.Context(), token)
	wantCode(t, err, "")
	store.revoked["anna/phone"] = true
	_, err = a.Device(t.Context(), token)
	wantCode(t, err, posthorn.CodeUnauthenticated, token)
	store.err = notFound
	_, err = a.Device(t.Context(), token)
	wantCode(t, err, posthorn.CodeUnauthenticated, token)
	store.err = posthorn.Errorf(posthorn.CodeUnavailable, "suspended")
	_, err = a.Device(t.Context(), token)
	wantCode(t, err, posthorn.CodeUnavailable, token)
}

func TestJWTConfigRefused(t *testing.T) {
	pub, _ := edKey(t)
	for name, cfg := range map[string]JWTConfig{
		"short secret":  {HS256: secret[:31]},
		"no Ed25519":    {EdDSA: pub[:31]},
		"two key sets":  {EdDSA: pub, JWKS: &JWKS{}},
		"empty but set": {HS256: []byte("x")},
	} {
		if _, err := New(Config{Store: newMemory(), JWT: cfg}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("no store: accepted")
	}
}

func TestParseEdDSA(t *testing.T) {
	pub, priv := edKey(t)
	jwk, err := json.Marshal(jwkOf(t, pub, "k", nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{pemOf(t, pub), jwk} {
		if got, err := ParseEdDSA(text); err != nil || !got.Equal(pub) {
			t.Errorf("%s: %v", text, err)
		}
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"private PEM": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		"RSA PEM":     pemOf(t, rsaKey(t).Public()),
		"damaged PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")}),
		"nothing":     nil,
		"raw bytes":   pub,
		"other JWK":   []byte(`{"kty":"oct","k":"AAAA"}`),
	} {
		if _, err := ParseEdDSA(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
