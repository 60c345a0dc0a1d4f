package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/posthorn/posthorn/client"
)

// tailCmd follows conversations for scripts, or sends for them (tail_send.go). What it writes is the event of
// docs/protocol.md, one a line and nothing else: fields may be added in later versions, none goes. Events of a conversation
// come in order and without a hole, through any number of reconnects; a run goes on where the device's last one ended.
type tailCmd struct {
	signInFlags
	logFlags
	Conv      []string `help:"Only these conversations." placeholder:"ID"`
	FromStart bool     `help:"First write what this device holds already; a device that is new fetches everything from the start."`
	Send      string   `help:"Send each line of the standard input to this conversation, write nothing, and end when all were sent." placeholder:"ID"`

	in io.Reader // the standard input, where tests do not put another
}

// tailPage is how far back a new device reaches into a conversation that begins while it runs; see heads.
const tailPage = 100

func (c *tailCmd) Run(ctx context.Context, out io.Writer) error {
	// Without a handler the first write into a closed pipe would kill the process, and with it the acks on their way.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	err := c.run(ctx, out)
	if errors.Is(err, syscall.EPIPE) || c.Send == "" && ctx.Err() != nil {
		return nil // the reader has enough, or the user has
	}
	return err
}

func (c *tailCmd) run(ctx context.Context, out io.Writer) error {
	cfg, err := c.config(ctx, "tail")
	if err != nil {
		return err
	}
	heads := &listedHeads{heads: map[string]int64{}}
	cfg.Start, cfg.Logger, cfg.Tracer = client.Tail(tailPage), c.logger(), heads
	if c.FromStart {
		cfg.Start = client.Beginning()
	}
	cl, err := client.Open(ctx, cfg)
	if err != nil {
		return c.openError(err)
	}
	if c.Send != "" {
		if c.in == nil {
			c.in = os.Stdin
		}
		err = c.sendLines(ctx, cl, c.in)
	} else {
		f := &follower{client: cl, out: out, all: c.FromStart, only: c.Conv, written: map[string]int64{}, heads: heads}
		err = f.follow(ctx)
	}
	return errors.Join(err, cl.Close())
}
