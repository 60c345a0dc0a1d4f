package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/posthorn/posthorn/internal/lab"
)

type labCmd struct {
	List   labListCmd   `cmd:"" help:"Show the checks: what each breaks, and what must hold."`
	Run    labRunCmd    `cmd:"" help:"Run checks, by name or pattern ('06-*')."`
	Client labClientCmd `cmd:"" hidden:"" help:"A device of a check: an SDK client that tells everything it sees."`
}

type labListCmd struct{}

func (labListCmd) Run(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, c := range lab.Checks() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, c.Fault, c.Must, c.Mechanism)
	}
	return w.Flush()
}

type labRunCmd struct {
	Names    []string      `arg:"" name:"name" help:"Names or patterns; quote the star."`
	Seed     int64         `help:"Seed of the first round; each further round adds one." default:"1"`
	Rounds   int           `help:"How often each check is run." default:"1"`
	RunName  string        `name:"run" help:"Name of the run's folder; im- and the group of each check where absent." placeholder:"NAME"`
	Evidence string        `help:"Folder for the evidence." default:"evidence" placeholder:"DIR"`
	PgBin    string        `help:"Folder with PostgreSQL's programs." placeholder:"DIR"`
	Bin      string        `help:"The posthorn to put to the test; this one where absent." placeholder:"FILE"`
	Patience time.Duration `help:"Deadline of each wait." default:"15s" hidden:""`
}

// Exit statuses of `lab run`: what failed is told from what could not be run here.
const (
	exitFailed = exitCode(1)
	exitNotRun = exitCode(3)
)

func (c *labRunCmd) Run(ctx context.Context, out io.Writer) error {
	checks, err := lab.Select(c.Names)
	if err != nil {
		return err
	}
	bin := c.Bin
	if bin == "" {
		if bin, err = os.Executable(); err != nil {
			return err
		}
	}
	sum, err := lab.Run(ctx, lab.Options{Program: bin, Seed: c.Seed, Rounds: c.Rounds, Run: c.RunName, Evidence: c.Evidence, PgBin: c.PgBin,
		Patience: c.Patience, Version: version()}, checks, out)
	switch {
	case err != nil:
		return err
	case sum.Failed > 0:
		return exitFailed
	case sum.NotRun > 0:
		return exitNotRun
	}
	return nil
}

type labClientCmd struct {
	URL            string        `required:"" help:"The server."`
	Device         string        `required:"" help:"user/device."`
	Store          string        `required:"" help:"The device's file."`
	Token          string        `required:"" help:"Its token; give it as POSTHORN_TOKEN."`
	RequestTimeout time.Duration `default:"10s" help:"How long an answer is waited for."`
	AckEvery       int           `default:"4" help:"How many events are confirmed at once."`
	AckAfter       time.Duration `default:"200ms" help:"How long an event waits for others before it is confirmed."`
}

func (c *labClientCmd) Run(ctx context.Context, out io.Writer) error {
	return lab.RunClient(ctx, lab.ClientOptions{URL: c.URL, Name: c.Device, Token: c.Token, Store: c.Store, RequestTimeout: c.RequestTimeout,
		AckEvery: c.AckEvery, AckAfter: c.AckAfter}, os.Stdin, out)
}
