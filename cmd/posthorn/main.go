// Command posthorn is the whole product: the server, its tools and a terminal client.
//
// This package holds flags, and the wiring of the rooms by hand: what starts in which order, and stops in the reverse one
// (server.go). It owns the goroutine that serves HTTP; everything else belongs to the rooms.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/posthorn/posthorn/internal/fault"
)

// cli is every command. A flag --some-name has the variable POSTHORN_SOME_NAME and the key some-name in the configuration
// file.
type cli struct {
	Config kong.ConfigFlag `help:"YAML file with flag names as keys." placeholder:"FILE"`

	Serve   serveCmd   `cmd:"" help:"Run the server, with a private PostgreSQL unless --database-url names one."`
	Migrate migrateCmd `cmd:"" help:"Bring the database schema up to date."`
	Adopt   adoptCmd   `cmd:"" help:"Vouch that this database goes on where another one stopped."`
	User    userCmd    `cmd:"" help:"Make and list users."`
	Token   tokenCmd   `cmd:"" help:"Make a device token."`
	Key     keyCmd     `cmd:"" help:"Make, list and revoke server keys."`
	Chat    chatCmd    `cmd:"" help:"Chat in the terminal."`
	Tail    tailCmd    `cmd:"" help:"Follow conversations as lines of JSON."`
	Lab     labCmd     `cmd:"" help:"Break real processes and judge what is left."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	if err := fault.Load(); err != nil {
		fmt.Fprintln(errs, "posthorn:", err)
		return 2
	}
	var c cli
	code := -1
	k, err := kong.New(&c, kong.Name("posthorn"), kong.Description("Messaging that needs nothing but PostgreSQL."),
		kong.DefaultEnvars("POSTHORN"), kong.Configuration(yamlResolver), kong.Writers(out, errs),
		kong.Exit(func(n int) { code = n }), kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintln(errs, "posthorn:", err)
		return 2
	}
	kctx, err := k.Parse(args)
	if code >= 0 { // --help
		return code
	}
	if err != nil {
		fmt.Fprintln(errs, "posthorn:", err)
		return 2
	}
	// The first signal asks for an orderly end, the second one ends at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	kctx.BindTo(ctx, (*context.Context)(nil))
	kctx.BindTo(out, (*io.Writer)(nil))
	err = kctx.Run()
	var exit exitCode
	switch {
	case errors.As(err, &exit):
		return int(exit)
	case err != nil:
		fmt.Fprintln(errs, "posthorn:", err)
		return 1
	}
	return 0
}

// exitCode ends the program with a status after everything was said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
