package embedpg

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// secrets are the passwords of the two roles. They lie beside the cluster, so that the
// URL is the same after every restart.
type secrets struct {
	role, super string
}

// loadSecrets reads the passwords, and makes those that are missing; fresh: at least one
// was made, and is neither stored nor in force yet.
func loadSecrets(f folder) (s secrets, fresh bool, err error) {
	for path, value := range map[string]*string{f.password(): &s.role, f.superPassword(): &s.super} {
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s, false, fmt.Errorf("embedpg: %w", err)
		}
		if *value = strings.TrimSpace(string(content)); *value == "" {
			*value = rand.Text() // 128 bits, letters and digits: needs no escaping anywhere
			fresh = true
		}
	}
	return s, fresh, nil
}

func (s secrets) store(f folder) error {
	return errors.Join(
		writeFile(f.password(), s.role+"\n", 0o600),
		writeFile(f.superPassword(), s.super+"\n", 0o600),
	)
}

// writeFile replaces a file durably and whole: a crash leaves the old or the new content.
func writeFile(path, content string, mode fs.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(path), newPrefix+"file-*")
	if err != nil {
		return fmt.Errorf("embedpg: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // after the rename there is none
	_, err = file.WriteString(content)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("embedpg: write %s: %w", path, err)
	}
	return nil
}

// syncDir makes a rename survive a power loss.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
