package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// chatMemory is what the chat itself remembers of conversations between two starts. It decides nothing: a file that is
// gone or damaged costs unread counts, so it has no place in the store.
type chatMemory struct {
	path  string // "": kept nowhere
	Convs map[string]remembered
}

type remembered struct {
	Seen  int64    `json:"seen,omitempty"`  // the newest event that was on the screen
	Peers []string `json:"peers,omitempty"` // who else is in it: the name of a conversation without a title
}

func loadChatMemory(path string) *chatMemory {
	m := &chatMemory{path: path}
	if b, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(b, &m.Convs)
	}
	if m.Convs == nil {
		m.Convs = map[string]remembered{}
	}
	return m
}

func (m *chatMemory) save() error {
	if m.path == "" {
		return nil
	}
	b, err := json.Marshal(m.Convs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(m.path), 0o700); err != nil {
		return err
	}
	return writeSecret(m.path, string(b))
}
