package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/posthorn/posthorn/client"
)

// chatCmd is the terminal chat. It shows what the SDK holds: the local log and the outbox. Bubble Tea owns the goroutines
// of the screen, the client its own; the chat starts none.
type chatCmd struct {
	signInFlags

	program func(tea.Model, ...tea.ProgramOption) *tea.Program // tea.NewProgram, where tests do not put another
}

// chatTail is where a conversation begins on a new device; older messages come by pgup.
const chatTail = 200

func (c *chatCmd) Run(ctx context.Context, out io.Writer) error {
	screen, ok := out.(*os.File)
	if !ok || !isTerminal(screen) || !isTerminal(os.Stdin) {
		return errors.New("chat needs a terminal for its input and output; in scripts use `posthorn tail`, which writes and reads lines")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // the window was closed
	defer stop()
	acks := newChatAcks()
	cl, path, err := c.open(ctx, acks)
	if err != nil {
		return err
	}
	err = c.talk(ctx, cl, acks, loadChatMemory(path+".seen"), tea.WithOutput(screen))
	waiting := len(cl.Outbox())
	if err := errors.Join(err, cl.Close()); err != nil {
		return err
	}
	if waiting > 0 {
		fmt.Fprintf(out, "%s not sent yet and kept; the next start as this device sends what waits.\n", plural(waiting, "message is", "messages are"))
	}
	return nil
}

func (c *chatCmd) open(ctx context.Context, acks *chatAcks) (cl *client.Client, path string, err error) {
	cfg, err := c.config(ctx, "terminal")
	if err != nil {
		return nil, "", err
	}
	cfg.Start = client.Tail(chatTail)
	cfg.Hooks.Acked = acks.put
	if cl, err = client.Open(ctx, cfg); err != nil {
		return nil, "", c.openError(err)
	}
	return cl, cfg.StorePath, nil
}

// talk shows the screen until the user or a signal ends it. Signals are main's: it ends the context.
func (c *chatCmd) talk(ctx context.Context, cl *client.Client, acks *chatAcks, memory *chatMemory, opts ...tea.ProgramOption) error {
	ctx, cancel := context.WithCancel(ctx) // also ends what the screen has asked the server for
	defer cancel()
	m, err := newChatModel(ctx, chatSetup{
		client: cl, feed: cl.Subscribe(1024).C(), acks: acks, memory: memory,
		user: c.As, device: c.Device, server: strings.TrimPrefix(strings.TrimPrefix(c.Server, "http://"), "https://"),
		now: time.Now, zone: time.Local,
	})
	if err != nil {
		return err
	}
	if err := cl.Start(ctx); err != nil {
		return err
	}
	if c.program == nil {
		c.program = tea.NewProgram
	}
	p := c.program(m, append(opts, tea.WithoutSignalHandler())...)
	stop := context.AfterFunc(ctx, p.Quit)
	_, err = p.Run()
	stop()
	return errors.Join(err, m.err, memory.save())
}

// isTerminal tells a terminal from a pipe or file. Of the devices that look like one only /dev/null is met in practice.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
