package embedpg

import (
	"context"
	_ "embed"
	"errors"
	"os/exec"
	"runtime"
	"strings"
)

var (
	//go:embed bootstrap.sql
	bootstrapSQL string
	//go:embed passwords.sql
	passwordsSQL string
)

// single runs a script in PostgreSQL's single-user mode: SQL without a driver, a socket
// or psql, which relocated builds lack. exit_on_error ends the session with code 1 at the
// first error (without it errors are printed and the code is 0), so code 0 means that
// every line of the script was carried out.
func single(ctx context.Context, b binaries, acct account, dataDir, script string, sec secrets, env ...string) error {
	cmd := command(ctx, b, acct, "postgres", "--single",
		"-c", "exit_on_error=on",
		"-c", "log_min_error_statement=panic", // passwords do not belong in error texts
		"-D", dataDir, "postgres")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin = strings.NewReader(oneCommandPerLine(script, sec))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := runHelper(cmd); err != nil {
		return &StepError{Step: "bootstrap", Err: err, Log: lastLines(out.String())}
	}
	return nil
}

// oneCommandPerLine drops comments and fills in the passwords.
func oneCommandPerLine(script string, sec secrets) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
	}
	return strings.NewReplacer(
		"${role_password}", sqlQuote(sec.role),
		"${super_password}", sqlQuote(sec.super),
	).Replace(b.String())
}

// sqlQuote makes an SQL literal.
func sqlQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// runHelper runs a helper program while this goroutine holds its OS thread: on Linux the
// helper dies with the thread that started it (child_linux.go).
func runHelper(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	setDeathSignal(cmd.SysProcAttr, deathOfHelper)
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return errors.New(cmd.Args[0] + ": " + exit.String())
	}
	return err
}
