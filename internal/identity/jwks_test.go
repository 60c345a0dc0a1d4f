package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/posthorn/posthorn"
)

var rsaOnce = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func rsaKey(t *testing.T) *rsa.PrivateKey { t.Helper(); return rsaOnce() }

func jwkOf(t *testing.T, key crypto.PublicKey, kid string, over map[string]any) map[string]any {
	t.Helper()
	k, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(k.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	for name, v := range over {
		if out[name] = v; v == nil {
			delete(out, name)
		}
	}
	return out
}

func setOf(t *testing.T, keys ...map[string]any) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// issuer is an HTTPS server whose answer may be replaced; it counts how often it was asked.
type issuer struct {
	*httptest.Server
	asked   atomic.Int32
	handler atomic.Pointer[http.HandlerFunc]
}

func newIssuer(t *testing.T, h http.HandlerFunc) *issuer {
	t.Helper()
	i := &issuer{}
	i.handler.Store(&h)
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		(*i.handler.Load())(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) answer(set []byte) {
	h := serve(set)
	i.handler.Store(&h)
}

func serve(set []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) }
}

func openSet(t *testing.T, i *issuer, clk *clock) (*JWKS, *Authenticator) {
	t.Helper()
	j, err := NewJWKS(JWKSConfig{Source: i.URL + "/keys?key=confidential", Transport: i.Client().Transport, Now: clk.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j, newAuth(t, Config{Store: newMemory(), Now: clk.now, JWT: JWTConfig{HS256: secret, JWKS: j}})
}

func TestJWKSAlgorithms(t *testing.T) {
	edPub, edPriv := edKey(t)
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaPriv := rsaKey(t)
	clk := newClock()
	_, a := openSet(t, newIssuer(t, serve(setOf(t,
		jwkOf(t, edPub, "ed", nil), jwkOf(t, p256.Public(), "ec", nil), jwkOf(t, rsaPriv.Public(), "rsa", map[string]any{"alg": "RS256"}),
		jwkOf(t, edPub, "enc", map[string]any{"use": "enc"}), jwkOf(t, edPub, "ops", map[string]any{"key_ops": []string{"encrypt"}}),
		map[string]any{"kty": "oct", "kid": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U"}, map[string]any{"kty": "strange"},
	))), clk)
	kid := func(s string) map[string]any { return map[string]any{"kid": s} }
	for name, c := range map[string]struct {
		method jwt.SigningMethod
		key    any
		header map[string]any
		ok     bool
	}{
		"EdDSA":                         {jwt.SigningMethodEdDSA, edPriv, kid("ed"), true},
		"EdDSA without kid":             {jwt.SigningMethodEdDSA, edPriv, nil, true},
		"ES256":                         {jwt.SigningMethodES256, p256, kid("ec"), true},
		"RS256":                         {jwt.SigningMethodRS256, rsaPriv, kid("rsa"), true},
		"HS256 beside the set":          {jwt.SigningMethodHS256, secret, nil, true},
		"PS256 with a key for RS256":    {jwt.SigningMethodPS256, rsaPriv, kid("rsa"), false},
		"RS512":                         {jwt.SigningMethodRS512, rsaPriv, kid("rsa"), false},
		"the kid of another key":        {jwt.SigningMethodEdDSA, edPriv, kid("ec"), false},
		"a key for encryption":          {jwt.SigningMethodEdDSA, edPriv, kid("enc"), false},
		"a key that does not verify":    {jwt.SigningMethodEdDSA, edPriv, kid("ops"), false},
		"a symmetric key from the set":  {jwt.SigningMethodHS256, []byte("secretsecretsecretsecretsecretse"), kid("oct"), false},
		"HS256 with a public key as is": {jwt.SigningMethodHS256, []byte(edPub), kid("ed"), false},
		"HS256 with a public key's PEM": {jwt.SigningMethodHS256, pemOf(t, rsaPriv.Public()), kid("rsa"), false},
		"kid is a number":               {jwt.SigningMethodEdDSA, edPriv, map[string]any{"kid": 1}, false},
		"kid is empty":                  {jwt.SigningMethodEdDSA, edPriv, kid(""), false},
		"kid is huge":                   {jwt.SigningMethodEdDSA, edPriv, kid(strings.Repeat("k", 4096)), false},
	} {
		t.Run(name, func(t *testing.T) {
			clk.add(setBetween) // so that each may fetch
			token := sign(t, c.method, c.key, c.header, good(nil))
			_, err := a.Device(t.Context(), token)
			if c.ok {
				wantCode(t, err, "")
			} else {
				wantCode(t, err, posthorn.CodeUnauthenticated, token)
			}
		})
	}
}

func TestJWKSRotation(t *testing.T) {
	oldPub, oldPriv := edKey(t)
	newPub, newPriv := edKey(t)
	clk, iss := newClock(), newIssuer(t, serve(setOf(t, jwkOf(t, oldPub, "old", nil))))
	j, a := openSet(t, iss, clk)
	with := func(kid string, key ed25519.PrivateKey) string {
		return sign(t, jwt.SigningMethodEdDSA, key, map[string]any{"kid": kid}, good(m{"exp": start.Add(100 * time.Hour).Unix()}))
	}
	asked := func(n int32) {
		t.Helper()
		if got := iss.asked.Load(); got != n {
			t.Fatalf("the issuer was asked %d times, want %d", got, n)
		}
	}
	check := func(token string, code posthorn.Code) {
		t.Helper()
		_, err := a.Device(t.Context(), token)
		wantCode(t, err, code, token, "confidential")
	}

	check(with("old", oldPriv), "")
	check(with("old", oldPriv), "")
	asked(1)
	// A new key within the rate bound: nobody knows yet, so the session is not refused.
	iss.answer(setOf(t, jwkOf(t, newPub, "new", nil)))
	check(with("new", newPriv), posthorn.CodeUnavailable)
	asked(1)
	clk.add(setBetween)
	check(with("new", newPriv), "")
	asked(2)
	// The old key was withdrawn with it.
	clk.add(setBetween)
	check(with("old", oldPriv), posthorn.CodeUnauthenticated)
	asked(3)
	// An expired token is not worth a fetch, nor is one that no algorithm fits.
	clk.add(setBetween)
	check(sign(t, jwt.SigningMethodEdDSA, newPriv, map[string]any{"kid": "else"}, good(m{"exp": 1})), posthorn.CodeUnauthenticated)
	asked(3)

	// An old set serves on while a new one is fetched, also when the issuer is away; not for ever, though.
	iss.handler.Store(new(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })))
	clk.add(setFresh)
	check(with("new", newPriv), "")
	if err := j.Refresh(t.Context()); err == nil { // waits for the fetch that the last call began
		t.Error("a status of 502 is no error")
	}
	asked(4)
	check(with("new", newPriv), "")
	clk.add(setLife)
	check(with("new", newPriv), posthorn.CodeUnavailable)
	asked(5)
}

// TestJWKSNoStorm: however many tokens with unknown keys arrive, one fetch is on its way.
func TestJWKSNoStorm(t *testing.T) {
	pub, priv := edKey(t)
	clk, release := newClock(), make(chan struct{})
	set := setOf(t, jwkOf(t, pub, "k", nil))
	iss := newIssuer(t, func(w http.ResponseWriter, _ *http.Request) { <-release; _, _ = w.Write(set) })
	_, a := openSet(t, iss, clk)
	token := sign(t, jwt.SigningMethodEdDSA, priv, map[string]any{"kid": "k"}, good(nil))
	var wg sync.WaitGroup
	var bad atomic.Int32
	for range 50 {
		wg.Go(func() {
			if _, err := a.Device(t.Context(), token); err != nil {
				bad.Add(1)
			}
		})
	}
	// One that does not want to wait gets away.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Device(ctx, token)
	wantCode(t, err, posthorn.CodeUnavailable, token)
	close(release)
	wg.Wait()
	if n := iss.asked.Load(); n != 1 || bad.Load() != 0 {
		t.Errorf("asked %d times, %d refused", n, bad.Load())
	}
}

func TestJWKSTrouble(t *testing.T) {
	pub, priv := edKey(t)
	set := setOf(t, jwkOf(t, pub, "k", nil))
	other := newIssuer(t, serve(set))
	for name, h := range map[string]http.HandlerFunc{
		"redirect to another host": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) },
		"redirect to http": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/x", http.StatusFound)
		},
		"redirect in circles": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/keys?key=confidential", http.StatusFound)
		},
		"no JSON":         serve([]byte("<html>")),
		"no keys":         serve([]byte(`{"keys":[]}`)),
		"too large":       serve(append(set, make([]byte, setBytes)...)),
		"not found":       func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"connection lost": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			_, a := openSet(t, newIssuer(t, h), newClock())
			token := sign(t, jwt.SigningMethodEdDSA, priv, map[string]any{"kid": "k"}, good(nil))
			_, err := a.Device(t.Context(), token)
			wantCode(t, err, posthorn.CodeUnavailable, token, "confidential")
		})
	}
	if n := other.asked.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}
	t.Run("redirect within the host", func(t *testing.T) {
		_, a := openSet(t, newIssuer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/moved" {
				http.Redirect(w, r, "/moved", http.StatusFound)
				return
			}
			_, _ = w.Write(set)
		}), newClock())
		_, err := a.Device(t.Context(), sign(t, jwt.SigningMethodEdDSA, priv, map[string]any{"kid": "k"}, good(nil)))
		wantCode(t, err, "")
	})
	t.Run("closed", func(t *testing.T) {
		j, a := openSet(t, newIssuer(t, serve(set)), newClock())
		j.Close()
		j.Close()
		_, err := a.Device(t.Context(), sign(t, jwt.SigningMethodEdDSA, priv, map[string]any{"kid": "k"}, good(nil)))
		wantCode(t, err, posthorn.CodeUnavailable)
	})
}

// TestJWKSPlainHTTP: not even the same host is asked without TLS.
func TestJWKSPlainHTTP(t *testing.T) {
	pub, priv := edKey(t)
	set := setOf(t, jwkOf(t, pub, "k", nil))
	var asked []string
	j, err := NewJWKS(JWKSConfig{Source: "https://issuer.example/keys", Now: newClock().now, Transport: roundTrip(func(r *http.Request) *http.Response {
		asked = append(asked, r.URL.String())
		w := httptest.NewRecorder()
		if r.URL.Scheme == "https" {
			http.Redirect(w, r, "http://issuer.example/keys", http.StatusFound)
		} else {
			serve(set)(w, r)
		}
		return w.Result()
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	a := newAuth(t, Config{Store: newMemory(), Now: newClock().now, JWT: JWTConfig{JWKS: j}})
	_, err = a.Device(t.Context(), sign(t, jwt.SigningMethodEdDSA, priv, map[string]any{"kid": "k"}, good(nil)))
	if wantCode(t, err, posthorn.CodeUnavailable); len(asked) != 1 {
		t.Errorf("asked %v", asked)
	}
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestKeyChoice: a token that names no key is judged only where there is no choice, and weak keys judge nothing.
func TestKeyChoice(t *testing.T) {
	one, priv := edKey(t)
	two, _ := edKey(t)
	_, a := openSet(t, newIssuer(t, serve(setOf(t, jwkOf(t, one, "one", nil), jwkOf(t, two, "two", nil)))), newClock())
	token := sign(t, jwt.SigningMethodEdDSA, priv, nil, good(nil))
	_, err := a.Device(t.Context(), token)
	wantCode(t, err, posthorn.CodeUnauthenticated, token)

	bits := func(n uint) *rsa.PublicKey { return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), n-1), E: 65537} }
	for name, c := range map[string]struct {
		key      any
		declared string
		want     int
	}{
		"2048 bits": {bits(2048), "", 2}, "2047 bits": {bits(2047), "", 0}, "declared": {bits(2048), "PS256", 1}, "declared as HMAC": {bits(2048), "HS256", 0},
		"declared none": {one, "none", 0}, "P-384": {&ecdsa.PublicKey{Curve: elliptic.P384()}, "", 1}, "P-224": {&ecdsa.PublicKey{Curve: elliptic.P224()}, "", 0}, "bytes": {[]byte("secret"), "HS256", 0},
	} {
		if got := algorithmsOf(c.key, c.declared); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestJWKSSource(t *testing.T) {
	pub, priv := edKey(t)
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(path, setOf(t, jwkOf(t, pub, "k", nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	clk := newClock()
	j, err := NewJWKS(JWKSConfig{Source: path, Now: clk.now})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	a := newAuth(t, Config{Store: newMemory(), Now: clk.now, JWT: JWTConfig{JWKS: j}})
	_, err = a.Device(t.Context(), sign(t, jwt.SigningMethodEdDSA, priv, map[string]any{"kid": "k"}, good(nil)))
	wantCode(t, err, "")
	// The file is read again for a new key.
	pub2, priv2 := edKey(t)
	if err := os.WriteFile(path, setOf(t, jwkOf(t, pub2, "k2", nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = a.Device(t.Context(), sign(t, jwt.SigningMethodEdDSA, priv2, map[string]any{"kid": "k2"}, good(nil)))
	wantCode(t, err, "")

	for _, bad := range []string{"http://issuer.example/keys", "https://user:pass@issuer.example/keys", "ftp://x/y", "https://", path + ".absent"} {
		if j, err := NewJWKS(JWKSConfig{Source: bad}); err == nil {
			j.Close()
			t.Errorf("%s: accepted", bad)
		}
	}
}
