package identity

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/posthorn/posthorn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is set by hand.
type clock struct {
	mu sync.Mutex
	t  time.Time // guarded by mu
}

func newClock() *clock { return &clock{t: start} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// memory fills the Store port.
type memory struct {
	mu      sync.Mutex // guards what follows
	tokens  map[[32]byte]TokenRow
	keys    map[[32]byte]KeyRow
	revoked map[string]bool // user/device
	err     error           // what every call answers, where set
}

func newMemory() *memory {
	return &memory{tokens: map[[32]byte]TokenRow{}, keys: map[[32]byte]KeyRow{}, revoked: map[string]bool{}}
}

var notFound = posthorn.Errorf(posthorn.CodeNotFound, "not there")

func (m *memory) TokenByHash(_ context.Context, hash [32]byte) (TokenRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row, ok := m.tokens[hash]
	if !ok && m.err == nil {
		return row, notFound
	}
	row.Revoked = row.Revoked || m.revoked[row.User+"/"+row.Device]
	return row, m.err
}

func (m *memory) KeyByHash(_ context.Context, hash [32]byte) (KeyRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row, ok := m.keys[hash]
	if !ok && m.err == nil {
		return row, notFound
	}
	return row, m.err
}

func (m *memory) DeviceRevoked(_ context.Context, user, device string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revoked[user+"/"+device], m.err
}

func (m *memory) InsertToken(_ context.Context, hash [32]byte, row TokenRow) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[hash] = row
	return m.err
}

func (m *memory) InsertKey(_ context.Context, hash [32]byte, row KeyRow) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row.ID = strconv.Itoa(len(m.keys) + 1)
	m.keys[hash] = row
	return row.ID, m.err
}

func (m *memory) ListKeys(context.Context, string, int) (rows []KeyRow, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range m.keys {
		rows = append(rows, row)
	}
	return rows, "", m.err
}

func (m *memory) RevokeKey(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for hash, row := range m.keys {
		if row.ID == id {
			row.Revoked = true
			m.keys[hash] = row
			return m.err
		}
	}
	return notFound
}

// wantCode fails unless err is a *posthorn.Error with this code ("" : no error) that holds none of the secrets.
func wantCode(t *testing.T, err error, code posthorn.Code, secrets ...string) {
	t.Helper()
	var e *posthorn.Error
	switch {
	case code == "" && err != nil:
		t.Fatalf("refused: %v", err)
	case code == "":
		return
	case !errors.As(err, &e):
		t.Fatalf("got %v, want a *posthorn.Error with %s", err, code)
	case e.Code != code:
		t.Fatalf("got %v, want %s", err, code)
	}
	for _, s := range secrets {
		for _, part := range strings.Split(s, ".") {
			if len(part) > 3 && strings.Contains(err.Error(), part) {
				t.Fatalf("the error quotes the credential: %v", err)
			}
		}
	}
}

func newAuth(t *testing.T, cfg Config) *Authenticator {
	t.Helper()
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
