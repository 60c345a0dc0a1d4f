package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/wire"
)

// A doomed client is this test binary once more: a device of the SDK that ends without warning (exit 137, nothing is
// flushed or closed) as soon as a certain frame passes. What it leaves is its store.

const doomedEnv = "POSTHORN_DOOMED_CLIENT"

type doom struct {
	URL, Token, Device, Store string

	Frame string           // the type of the last frame that it sees
	Way   client.Direction // In: before anything is done about it; Out: before it is written
}

func doomed() {
	var d doom
	err := json.Unmarshal([]byte(os.Getenv(doomedEnv)), &d)
	if err == nil {
		err = d.run()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

func (d doom) run() error {
	c, err := client.Open(context.Background(), client.Config{URL: d.URL, Device: d.Device, StorePath: d.Store,
		Token: func(context.Context) (string, error) { return d.Token, nil },
		Tracer: tap{frame: func(way client.Direction, f wire.Frame, _ []byte) {
			if way == d.Way && f.Type() == d.Frame {
				os.Exit(137)
			}
		}}})
	if err != nil {
		return err
	}
	if err := c.Start(context.Background()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent is gone
	return err
}

// die runs a client until its end.
func (d doom) die(t *testing.T) {
	t.Helper()
	spec, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), doomedEnv+"="+string(spec))
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 137 {
		t.Fatalf("the client ended with %v before it saw %s\n%s", err, d.Frame, out)
	}
}
