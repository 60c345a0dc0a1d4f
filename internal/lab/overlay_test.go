package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// mutate gives the file's text with the mechanism taken out.
func (m *Mutant) mutate(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(b), m.Old); n != 1 {
		return "", fmt.Errorf("mutant %s: what it replaces stands in %s %d times, not once", m.Name, m.File, n)
	}
	return strings.Replace(string(b), m.Old, m.New, 1), nil
}

// overlay writes what `go build -overlay` wants to know into dir; nothing below root is touched.
func (m *Mutant) overlay(root, dir string) (path string, err error) {
	text, err := m.mutate(root)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "mutant-"+filepath.Base(m.File))
	path = filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, filepath.FromSlash(m.File)): changed}})
	if err != nil {
		return "", err
	}
	return path, errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(path, b, 0o600))
}

// compile builds the package that the mutant changes, or that embeds what it changes, and nothing else.
func (m *Mutant) compile(ctx context.Context, root, dir string) error {
	pkg := filepath.ToSlash(filepath.Dir(m.File))
	if filepath.Ext(m.File) != ".go" {
		pkg = filepath.ToSlash(filepath.Dir(pkg))
	}
	return m.build(ctx, root, dir, "./"+pkg)
}

// program makes the whole program with the mechanism taken out.
func (m *Mutant) program(ctx context.Context, root, dir, out string) error {
	return m.build(ctx, root, dir, "-o", out, "./cmd/posthorn")
}

func (m *Mutant) build(ctx context.Context, root, dir string, args ...string) error {
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-overlay", overlay}, args...)...)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mutant %s: %w\n%s", m.Name, err, text)
	}
	return nil
}
