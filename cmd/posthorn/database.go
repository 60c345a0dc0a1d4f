package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/posthorn/posthorn/internal/embedpg"
)

// databaseFlags say where the database is.
type databaseFlags struct {
	DatabaseURL string `name:"database-url" help:"An existing PostgreSQL; without it the server starts a private one below --data." placeholder:"URL"`
	Data        string `help:"Folder for the private PostgreSQL and its URL file." default:"./posthorn-data" env:"POSTHORN_DATA,DATA_DIR" placeholder:"DIR"`
	Schema      string `help:"Schema that holds the tables." default:"posthorn"`
}

// urlFile is where a server tells the tools of the private database.
func (d databaseFlags) urlFile() string { return filepath.Join(d.Data, "database-url") }

// witnessFile is where this gateway keeps what the database must still hold; "" where there is no folder to keep it in.
func (d databaseFlags) witnessFile(log *slog.Logger) string {
	if d.Data == "" {
		return ""
	}
	if err := os.MkdirAll(d.Data, 0o755); err != nil {
		log.Warn("what this gateway has seen is kept in memory only", "error", err)
		return ""
	}
	return filepath.Join(d.Data, "witness.json")
}

// url finds the database for tools: the flag, or the one that a server runs below the data folder.
func (d databaseFlags) url() (string, error) {
	if d.DatabaseURL != "" {
		return d.DatabaseURL, nil
	}
	b, err := os.ReadFile(d.urlFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no --database-url, and %s does not exist: is a server running there?", d.urlFile())
	}
	return strings.TrimSpace(string(b)), err
}

// startPrivate starts the private PostgreSQL and tells its URL to the tools.
func (d databaseFlags) startPrivate(ctx context.Context, pgBin string, log *slog.Logger) (*embedpg.Server, error) {
	if err := os.MkdirAll(d.Data, 0o755); err != nil {
		return nil, err
	}
	pg, err := embedpg.Start(ctx, embedpg.Config{DataDir: filepath.Join(d.Data, "postgres"), BinDir: pgBin, Logger: log, DieWithParent: true})
	if err != nil {
		return nil, err
	}
	if err := writeSecret(d.urlFile(), pg.URL()+"\n"); err != nil {
		return nil, errors.Join(err, pg.Stop(ctx))
	}
	return pg, nil
}

// writeSecret replaces a file that only its owner may read; a reader sees the old or the new one, never half.
func writeSecret(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
