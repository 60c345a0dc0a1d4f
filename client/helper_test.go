package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/posthorn/posthorn/internal/fault"
)

// Crash tests run a client in a process of its own, which is this test binary once more, and end it without warning: by
// a fault point that halts, or by SIGKILL. What is judged afterwards is the file that it left.

const helperEnv = "POSTHORN_CLIENT_HELPER" // the server's URL
const helperStore = "POSTHORN_CLIENT_HELPER_STORE"

// helper is the process: a client that runs until it is killed or its parent is gone.
func helper() {
	if err := fault.Load(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	c, err := Open(context.Background(), helperConfig(os.Getenv(helperEnv), os.Getenv(helperStore)))
	if err == nil {
		err = c.Start(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// helperConfig is the device of the crash tests, with fsync on.
func helperConfig(url, store string) Config {
	return Config{URL: url, Device: "phone", StorePath: store, Token: func(context.Context) (string, error) { return "good", nil }}
}

// child is a client in another process.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   bytes.Buffer
}

func startChild(t *testing.T, url, store, faults string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), helperEnv+"="+url, helperStore+"="+store, "POSTHORN_FAULT="+faults)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	in, err := c.cmd.StdinPipe()
	if err == nil {
		c.stdin = in
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// killed ends the process as a power cut would, the file system aside.
func (c *child) killed(t *testing.T) {
	t.Helper()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	_ = c.stdin.Close()
}

// halted waits for the fault point to end the process.
func (c *child) halted(t *testing.T) {
	t.Helper()
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 137 {
		t.Fatalf("the client ended with %v, want exit 137\n%s", err, c.out.Bytes())
	}
}

// listen serves a fake on a real port.
func listen(t *testing.T, f *fake) string {
	t.Helper()
	srv := httptest.NewServer(f)
	t.Cleanup(func() {
		f.cut()
		srv.Close()
	})
	return srv.URL
}

// inspect opens the store of a client that is gone.
func inspect(t *testing.T, path, conv string, see func(storeTx, cursor)) {
	t.Helper()
	s, err := openStore(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	err = s.view(func(tx storeTx) error {
		rec, _, err := tx.cursor(conv)
		see(tx, rec)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
