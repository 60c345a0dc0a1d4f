package identity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthorn/posthorn"
)

const adminKey = "an-admin-key-of-more-than-32-bytes!"

func TestDeviceToken(t *testing.T) {
	ctx, store, clk := t.Context(), newMemory(), newClock()
	a := newAuth(t, Config{Store: store, AdminKey: adminKey, Now: clk.now})
	install := int64(7)
	tok, err := NewIssuer(store, clk.now).IssueToken(ctx, TokenRequest{User: "anna", Device: "phone", Install: &install, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if !tok.ExpiresAt.Equal(start.Add(time.Hour)) {
		t.Errorf("expires at %v", tok.ExpiresAt)
	}
	d, err := a.Device(ctx, tok.Token)
	wantCode(t, err, "")
	if d.User != "anna" || d.Device != "phone" || d.Install == nil || *d.Install != 7 {
		t.Errorf("got %+v", d)
	}
	c, err := a.Bearer(ctx, "bearer  "+tok.Token)
	wantCode(t, err, "")
	if c.User != "anna" || c.Device != "phone" || c.Key != "" || c.Scopes != nil {
		t.Errorf("got %+v", c)
	}

	t.Run("unknown", func(t *testing.T) {
		_, err := a.Device(ctx, tok.Token+"x")
		wantCode(t, err, posthorn.CodeUnauthenticated, tok.Token)
	})
	t.Run("store in trouble", func(t *testing.T) {
		store.err = errors.New("connection refused")
		defer func() { store.err = nil }()
		_, err := a.Device(ctx, tok.Token)
		wantCode(t, err, posthorn.CodeUnavailable, tok.Token)
		if posthorn.AsError(err).Retry <= 0 {
			t.Error("does not say when to come back")
		}
	})
	t.Run("revocation holds at once", func(t *testing.T) {
		store.revoked["anna/phone"] = true
		defer delete(store.revoked, "anna/phone")
		_, err := a.Device(ctx, tok.Token)
		wantCode(t, err, posthorn.CodeUnauthenticated, tok.Token)
	})
	t.Run("expiry is exact", func(t *testing.T) {
		clk.add(time.Hour - time.Millisecond)
		_, err := a.Device(ctx, tok.Token)
		wantCode(t, err, "")
		clk.add(time.Millisecond)
		_, err = a.Device(ctx, tok.Token)
		wantCode(t, err, posthorn.CodeUnauthenticated, tok.Token)
	})
}

// TestStoredAsHashOnly: what the store holds does not let anybody in.
func TestStoredAsHashOnly(t *testing.T) {
	store := newMemory()
	i := NewIssuer(store, nil)
	tok, err := i.IssueToken(t.Context(), TokenRequest{User: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := i.CreateKey(t.Context(), "backend", []Scope{ScopeRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := store.tokens[sha256.Sum256([]byte(tok.Token))]; !ok {
		t.Error("the token is not stored by its SHA-256")
	}
	if _, ok := store.keys[sha256.Sum256([]byte(key))]; !ok {
		t.Error("the key is not stored by its SHA-256")
	}
	for text, prefix := range map[string]string{tok.Token: "pht_", key: "phk_"} {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, prefix))
		if err != nil || !strings.HasPrefix(text, prefix) || len(raw) < 32 {
			t.Errorf("%s…: %d random bytes, %v", prefix, len(raw), err)
		}
	}
	if !strings.HasPrefix(tok.Device, "dev_") || time.Until(tok.ExpiresAt) < DefaultTTL-time.Minute {
		t.Errorf("defaults: %q until %v", tok.Device, tok.ExpiresAt)
	}
	again, err := i.IssueToken(t.Context(), TokenRequest{User: "anna"})
	if err != nil || again.Token == tok.Token || again.Device == tok.Device {
		t.Errorf("made the same twice: %v", err)
	}
}

func TestIssueRefuses(t *testing.T) {
	negative := int64(-1)
	for name, r := range map[string]TokenRequest{
		"no user":      {},
		"NUL in user":  {User: "a\x00b"},
		"long device":  {User: "anna", Device: strings.Repeat("d", 129)},
		"NUL device":   {User: "anna", Device: "\x00"},
		"bad install":  {User: "anna", Install: &negative},
		"negative ttl": {User: "anna", TTL: -1},
		"ttl too long": {User: "anna", TTL: MaxTTL + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMemory()
			_, err := NewIssuer(store, nil).IssueToken(t.Context(), r)
			wantCode(t, err, posthorn.CodeBadFrame)
			if len(store.tokens) != 0 {
				t.Error("stored all the same")
			}
		})
	}
	for name, scopes := range map[string][]Scope{"none": nil, "unknown": {"root"}, "twice": {"read", "read"}, "case": {"Read"}} {
		t.Run("scopes "+name, func(t *testing.T) {
			_, _, err := NewIssuer(newMemory(), nil).CreateKey(t.Context(), "k", scopes)
			wantCode(t, err, posthorn.CodeBadFrame)
		})
	}
	store := newMemory()
	store.err = errors.New("down")
	_, _, err := NewIssuer(store, nil).CreateKey(t.Context(), "k", []Scope{ScopeAdmin})
	wantCode(t, err, posthorn.CodeUnavailable)
	store.err = notFound
	_, err = NewIssuer(store, nil).IssueToken(t.Context(), TokenRequest{User: "nobody"})
	wantCode(t, err, posthorn.CodeNotFound)
}

func TestServerKey(t *testing.T) {
	ctx, store := t.Context(), newMemory()
	a := newAuth(t, Config{Store: store, AdminKey: adminKey})
	i := NewIssuer(store, nil)
	row, key, err := i.CreateKey(ctx, "backend", []Scope{ScopeRead, ScopeWrite})
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Bearer(ctx, "Bearer "+key)
	wantCode(t, err, "")
	if c.Key != row.ID || c.User != "" || !slices.Equal(c.Scopes, []Scope{ScopeRead, ScopeWrite}) {
		t.Errorf("got %+v", c)
	}
	_, err = a.Device(ctx, key)
	wantCode(t, err, posthorn.CodeUnauthenticated, key)

	rows, _, err := i.ListKeys(ctx, "", 10)
	if err != nil || len(rows) != 1 || rows[0].ID != row.ID {
		t.Errorf("listed %+v, %v", rows, err)
	}
	if err := i.RevokeKey(ctx, row.ID); err != nil {
		t.Fatal(err)
	}
	_, err = a.Bearer(ctx, "Bearer "+key)
	wantCode(t, err, posthorn.CodeUnauthenticated, key)
	wantCode(t, i.RevokeKey(ctx, "17"), posthorn.CodeNotFound)
}

func TestAdminKey(t *testing.T) {
	ctx, store := t.Context(), newMemory()
	a := newAuth(t, Config{Store: store, AdminKey: adminKey})
	store.err = errors.New("database down") // the first key needs none
	c, err := a.Bearer(ctx, "Bearer "+adminKey)
	wantCode(t, err, "")
	if !slices.Contains(c.Scopes, ScopeAdmin) || strings.Contains(c.Key, adminKey) {
		t.Errorf("got %+v", c)
	}
	_, err = a.Device(ctx, adminKey)
	wantCode(t, err, posthorn.CodeUnauthenticated, adminKey)
	_, err = a.Bearer(ctx, "Bearer "+adminKey[1:])
	wantCode(t, err, posthorn.CodeUnauthenticated, adminKey)

	// Without one, the hash of nothing must not let anybody in.
	none := newAuth(t, Config{Store: newMemory()})
	if none.isAdmin("") {
		t.Error("the empty key is admin")
	}
	for _, bad := range []string{"with space", "line\nbreak", "ünïcode", strings.Repeat("a", maxToken+1)} {
		if _, err := New(Config{Store: store, AdminKey: bad}); err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("admin key %.10q…: %v", bad, err)
		}
	}
	if !WeakAdminKey("secret") || WeakAdminKey(adminKey) {
		t.Error("weak keys are not told apart")
	}
}

func TestBearerRefuses(t *testing.T) {
	a := newAuth(t, Config{Store: newMemory(), AdminKey: adminKey})
	for name, header := range map[string]string{
		"absent":        "",
		"only scheme":   "Bearer",
		"no token":      "Bearer ",
		"spaces":        "Bearer    ",
		"basic":         "Basic " + adminKey,
		"bare token":    adminKey,
		"tab":           "Bearer\t" + adminKey,
		"two tokens":    "Bearer " + adminKey + " " + adminKey,
		"comma":         "Bearer " + adminKey + ", Bearer x",
		"NUL":           "Bearer a\x00b",
		"not ASCII":     "Bearer é",
		"huge":          "Bearer " + strings.Repeat("a", 1<<20),
		"trailing":      "Bearer " + adminKey + " ",
		"other case":    "Bearer " + strings.ToUpper(adminKey),
		"not a JWT":     "Bearer a.b.c",
		"unknown token": "Bearer pht_nothing",
		"unknown key":   "Bearer phk_nothing",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.Bearer(context.Background(), header)
			wantCode(t, err, posthorn.CodeUnauthenticated, adminKey)
		})
	}
}

func FuzzParseBearer(f *testing.F) {
	for _, s := range []string{"", "Bearer", "Bearer x", "bearer   pht_x", "Basic x", "Bearer a b", "Bearer é", "Bearer \x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		token, err := parseBearer(header)
		if err != nil {
			if token != "" {
				t.Fatal("a token beside an error")
			}
			if rest := strings.TrimSpace(header); len(rest) > 60 && bytes.Contains([]byte(err.Error()), []byte(rest)) {
				t.Fatal("the error quotes the header")
			}
			return
		}
		if token == "" || len(token) > maxToken || !visible(token) || !strings.HasSuffix(header, " "+token) || !strings.EqualFold(header[:7], "bearer ") {
			t.Fatalf("took %q from %q", token, header)
		}
	})
}
