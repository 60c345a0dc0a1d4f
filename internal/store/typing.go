package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// What may be lost, such as who is writing, goes over a channel of its own that no reader waits for: by the notifier, which
// merges equal ones, and never on the way of a send. Where nothing listens (--doorbell poll) it stays in this process.

// softChannel is another one for each channel, and never too long.
func softChannel(channel string) string {
	sum := sha256.Sum256([]byte(channel))
	return "posthorn_soft_" + hex.EncodeToString(sum[:8])
}

// Typing shows here and elsewhere that a member is writing.
func (s *Store) Typing(conv, user string) {
	s.cfg.Fanout.Typing(conv, user)
	if s.cfg.Poll {
		return
	}
	// Three names of 128 bytes at most, so it fits a notification however they are escaped.
	if b, err := json.Marshal([3]string{s.cfg.Gateway, conv, user}); err == nil {
		s.notifier.Ring(softChannel(s.cfg.Channel), string(b))
	}
}

// overheard takes what another gateway told; anything else on the channel is nothing.
func (s *Store) overheard(payload string) {
	var x [3]string
	if json.Unmarshal([]byte(payload), &x) == nil && x[0] != s.cfg.Gateway && x[1] != "" && x[2] != "" {
		s.cfg.Fanout.Typing(x[1], x[2])
	}
}
