// Package identity judges who is calling: device tokens (pht_…) and server keys (phk_…), which are random and stored only
// as SHA-256, the first admin key, which lives in memory only, and JWTs of the application's own issuer.
//
// Every refusal is a *posthorn.Error with code UNAUTHENTICATED whose text never holds the credential; trouble in checking
// it (the database, the key set) is UNAVAILABLE, so that a client retries instead of dropping its session. Nothing is
// cached from one call to the next except an issuer's public keys: a revocation holds from the next call on.
//
// A JWT names its key type by nothing that its sender controls alone: each algorithm is tied to one source and one type of
// key, "none" is in no list, and clocks may differ by Leeway.
//
// It imports the root, golang-jwt (parsing and signatures) and jwkset (the JSON form of keys). keyfunc is not used: its
// refresh reads without a bound, follows redirects anywhere and lets callers queue behind its rate limit.
//
// Goroutines: a JWKS starts one for each fetch, at most one at a time; JWKS.Close ends it and waits for it. Nothing else
// here starts one.
package identity
