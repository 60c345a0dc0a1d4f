// Command withpg runs a command with one private PostgreSQL for all the tests below it, and stops it afterwards. It starts
// no goroutine of its own:
//
//	go run ./internal/pgtest/withpg -- go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/posthorn/posthorn/internal/pgtest"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withpg -- command …")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cluster, err := pgtest.StartCluster(ctx, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "withpg: PostgreSQL %s\n", cluster.Version())
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Stdin = os.Stdout, os.Stderr, os.Stdin
	cmd.Env = append(os.Environ(), pgtest.EnvSuper+"="+cluster.SuperURL(), pgtest.EnvRole+"="+cluster.URL())
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	err = cmd.Run()
	if cerr := cluster.Close(); cerr != nil {
		fmt.Fprintln(os.Stderr, "withpg:", cerr)
		return 1
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "withpg:", err)
		return 1
	}
	return 0
}
