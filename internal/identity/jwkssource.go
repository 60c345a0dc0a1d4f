package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// setBytes bounds a key set.
const setBytes = 1 << 20

// JWKSConfig names a key set.
type JWKSConfig struct {
	// Source is an https URL or a path.
	Source string
	// Transport for the URL; nil: the standard one.
	Transport http.RoundTripper
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// setSource reads a key set from where it lies.
type setSource struct {
	read  func(ctx context.Context) ([]publicKey, error)
	close func()
}

// NewJWKS opens a key set. A file is read at once; a URL is fetched at first use, since an issuer that is away must not
// keep the server from starting.
func NewJWKS(cfg JWKSConfig) (*JWKS, error) {
	j := &JWKS{now: cfg.Now}
	if j.now == nil {
		j.now = time.Now
	}
	if scheme, _, ok := strings.Cut(cfg.Source, "://"); ok {
		u, err := url.Parse(cfg.Source)
		if err != nil || !strings.EqualFold(scheme, "https") || u.Host == "" || u.User != nil {
			return nil, errors.New("a JWKS is read from a path or from an https URL without a user in it")
		}
		j.source = httpSource(u, cfg.Transport)
	} else {
		j.source = fileSource(cfg.Source)
		keys, err := j.source.read(context.Background())
		if err != nil {
			return nil, err
		}
		j.keys, j.fetched = keys, j.now()
	}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	return j, nil
}

func fileSource(path string) setSource {
	return setSource{close: func() {}, read: func(context.Context) ([]publicKey, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readSet(f)
	}}
}

// httpSource follows redirects within its own scheme and host only: whoever can answer for another host must not be able
// to name the keys.
func httpSource(u *url.URL, transport http.RoundTripper) setSource {
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if next.URL.Scheme != u.Scheme || next.URL.Host != u.Host {
			return fmt.Errorf("redirected to %s://%s, which is not followed", next.URL.Scheme, next.URL.Host)
		}
		if len(via) > 3 {
			return errors.New("too many redirects")
		}
		return nil
	}}
	return setSource{close: client.CloseIdleConnections, read: func(ctx context.Context) ([]publicKey, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "application/jwk-set+json, application/json")
		resp, err := client.Do(req)
		if err != nil {
			// The outer error quotes the URL, whose query may hold a key of the issuer's.
			if inner := errors.Unwrap(err); inner != nil {
				err = inner
			}
			return nil, fmt.Errorf("JWKS from %s: %w", u.Host, err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("JWKS from %s: status %d", u.Host, resp.StatusCode)
		}
		return readSet(resp.Body)
	}}
}

func readSet(r io.Reader) ([]publicKey, error) {
	text, err := io.ReadAll(io.LimitReader(r, setBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > setBytes {
		return nil, errors.New("the JWK set is larger than 1 MiB")
	}
	return parseSet(text)
}
