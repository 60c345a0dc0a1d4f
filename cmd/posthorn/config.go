package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// yamlResolver reads flags from a file. A key that no flag has is an error: a misspelt setting must not be a default.
func yamlResolver(r io.Reader) (kong.Resolver, error) {
	values := map[string]any{}
	if err := yaml.NewDecoder(r).Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &fileValues{values: values}, nil
}

type fileValues struct{ values map[string]any }

func (f *fileValues) Validate(app *kong.Application) error {
	known := map[string]bool{}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, fl := range n.Flags {
			known[fl.Name] = true
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(app.Node)
	for k := range f.values {
		if !known[k] {
			return fmt.Errorf("configuration file: there is no setting %q", k)
		}
	}
	return nil
}

func (f *fileValues) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	v, ok := f.values[flag.Name]
	if !ok {
		return nil, nil
	}
	if list, ok := v.([]any); ok {
		var parts []string
		for _, x := range list {
			parts = append(parts, fmt.Sprint(x))
		}
		return strings.Join(parts, ","), nil
	}
	return fmt.Sprint(v), nil
}

// logFlags are shared by the commands that log.
type logFlags struct {
	LogFormat string `help:"text or json." enum:"text,json" default:"text"`
	LogLevel  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
}

func (l logFlags) logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.LogLevel)) // kong checked the enum
	opts := &slog.HandlerOptions{Level: level}
	if l.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts))
}
