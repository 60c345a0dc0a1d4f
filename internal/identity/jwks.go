package identity

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Times of a key set.
const (
	setTimeout = 5 * time.Second  // of one fetch
	setBetween = 10 * time.Second // from the start of one fetch to the start of the next, whatever the reason
	setFresh   = 15 * time.Minute // older: a new one is fetched while the old one goes on serving
	setLife    = 24 * time.Hour   // older: no longer trusted, since a key may have been withdrawn
)

// JWKS is an issuer's set of public keys. It is fetched at first use, when a token names a key that it lacks, and when it
// has grown old; never more often than every setBetween, and callers share the fetch that is on its way.
type JWKS struct {
	source setSource
	now    func() time.Time
	ctx    context.Context // of all fetches; ended by Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex // guards what follows
	keys    []publicKey
	fetched time.Time // when the set in force was asked for; zero: there is none
	tried   time.Time // when the newest fetch began
	err     error     // of the newest fetch
	flight  chan struct{}
	closed  bool
}

// Close ends the fetch that is on its way and waits for it. It is legal twice.
func (j *JWKS) Close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.cancel()
	j.wg.Wait()
	j.source.close()
}

// Refresh fetches the set, unless that is forbidden by the rate bound; the error says why there may be no fresh one.
func (j *JWKS) Refresh(ctx context.Context) error {
	j.mu.Lock()
	flight := j.start()
	j.mu.Unlock()
	if flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// find gives the key for a token. A kid that the set lacks is refused only on the word of a set that was fetched for it:
// the issuer may have begun to use a new key, and a refusal costs a client its session.
func (j *JWKS) find(ctx context.Context, kid, alg string) (any, error) {
	j.mu.Lock()
	if age := j.now().Sub(j.fetched); age < setLife {
		if key, ok := match(j.keys, kid, alg); ok {
			if age > setFresh {
				j.start()
			}
			j.mu.Unlock()
			return key, nil
		}
	}
	flight, wait := j.start(), setBetween-j.now().Sub(j.tried)
	j.mu.Unlock()
	if flight == nil {
		return nil, unchecked("the issuer's keys are asked for again in a moment", max(wait, time.Second), nil)
	}
	select {
	case <-flight:
	case <-ctx.Done():
		return nil, unchecked("the issuer's keys did not arrive in time", time.Second, ctx.Err())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return nil, unchecked("the issuer's keys cannot be read just now", setBetween, j.err)
	}
	if key, ok := match(j.keys, kid, alg); ok {
		return key, nil
	}
	return nil, refused("the token is signed with a key that its issuer does not publish")
}

// start begins a fetch, or gives the one that is on its way; nil: it is too early for one. The caller holds mu.
func (j *JWKS) start() chan struct{} {
	if j.flight != nil {
		return j.flight
	}
	if j.closed || (!j.tried.IsZero() && j.now().Sub(j.tried) < setBetween) {
		return nil
	}
	done := make(chan struct{})
	j.flight, j.tried = done, j.now()
	j.wg.Go(func() {
		ctx, cancel := context.WithTimeout(j.ctx, setTimeout)
		defer cancel()
		keys, err := j.source.read(ctx)
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.err = err; err == nil {
			j.keys, j.fetched = keys, j.tried
		}
		j.flight = nil
		close(done)
	})
	return done
}

// match finds the key with this kid; without one, the only key that the algorithm fits.
func match(keys []publicKey, kid, alg string) (any, bool) {
	var found []any
	for _, k := range keys {
		if slices.Contains(k.algs, alg) && (kid == "" || k.kid == kid) {
			found = append(found, k.key)
		}
	}
	if len(found) == 0 || (kid == "" && len(found) > 1) {
		return nil, false
	}
	return found[0], true
}
