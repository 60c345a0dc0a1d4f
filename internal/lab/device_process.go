package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/posthorn/posthorn/client"
)

// ClientOptions are what `posthorn lab client` is told.
type ClientOptions struct {
	URL            string
	Name           string // user/device
	Token          string
	Store          string
	RequestTimeout time.Duration
	AckEvery       int
	AckAfter       time.Duration
}

// RunClient is a device process: an SDK client that tells everything it sees on out, a JSON record a line, and takes
// commands from in. It ends with in, with quit, or with ctx. Each line is written at once, so that a crash takes none along.
func RunClient(ctx context.Context, o ClientOptions, in io.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	rec := newRecorder(o.Name, func(r Record) { _ = enc.Encode(r) }) // the lab may have gone
	_, device, _ := strings.Cut(o.Name, "/")
	c, err := client.Open(ctx, client.Config{
		URL: o.URL, Device: device, StorePath: o.Store, RequestTimeout: o.RequestTimeout, AckEvery: o.AckEvery, AckAfter: o.AckAfter,
		Token:   func(context.Context) (string, error) { return o.Token, nil },
		Backoff: client.Backoff{First: 50 * time.Millisecond, Max: 500 * time.Millisecond},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Tracer:  rec, Hooks: client.Hooks{Applied: rec.applied},
	})
	if err != nil {
		return err
	}
	d := &deviceProcess{c: c, rec: rec}
	err = d.run(ctx, in)
	return errors.Join(err, c.Close())
}

type deviceProcess struct {
	c   *client.Client
	rec *recorder
}

func (d *deviceProcess) run(ctx context.Context, in io.Reader) error {
	if err := d.dump(ctx, ""); err != nil { // what the last process left, before anything else can happen
		return err
	}
	feed := d.c.Subscribe(4096)
	go d.follow(feed)
	if err := d.c.Start(ctx); err != nil {
		return err
	}
	lines := make(chan []byte)
	go func() { // ends with the process at the latest: nobody can interrupt a read of standard input
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- append([]byte(nil), s.Bytes()...)
		}
	}()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			var c command
			if err := json.Unmarshal(line, &c); err != nil {
				return fmt.Errorf("a command cannot be read: %w", err)
			}
			if c.Do == "quit" {
				return nil
			}
			if err := d.do(ctx, c); err != nil {
				d.rec.say(Record{What: Note, Cmid: c.Cmid, Text: c.Do + ": " + err.Error()})
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *deviceProcess) do(ctx context.Context, c command) (err error) {
	var p *client.Pending
	switch c.Do {
	case "send":
		p, err = d.c.Send(ctx, c.Conv, client.Message{Body: c.Body, Cmid: c.Cmid, ReplyTo: c.ReplyTo})
	case "leave":
		p, err = d.c.Leave(ctx, c.Conv)
	case "dump":
		return d.dump(ctx, c.Cmid)
	default:
		err = errors.New("no such command")
	}
	if err == nil {
		d.rec.say(Record{What: Queued, Type: c.Do, Conv: c.Conv, Cmid: p.Cmid})
	}
	return err
}

// follow tells which items were answered for good; after a restart nobody holds their handles, so the feed is asked.
func (d *deviceProcess) follow(feed *client.Feed) {
	for ch := range feed.C() {
		switch {
		case ch.Kind == client.ChangeSent:
			d.rec.say(Record{What: Settled, Conv: ch.Conv, Cmid: ch.Item.Cmid, Seq: ch.Sent.Seq, Mid: ch.Sent.Mid, Dup: ch.Sent.Dup})
		case ch.Kind == client.ChangeItem && ch.Item.State == client.ItemFailed:
			d.rec.say(Record{What: Settled, Conv: ch.Conv, Cmid: ch.Item.Cmid, Code: string(ch.Item.Err.Code)})
		case ch.Kind == client.ChangeReset:
			d.rec.say(Record{What: Note, Conv: ch.Conv, Text: "the log was cut back"})
		case ch.Kind == client.ChangeOverflow:
			d.rec.say(Record{What: Note, Text: "the feed overflowed"})
		}
	}
}

// dump tells what is on disk.
func (d *deviceProcess) dump(ctx context.Context, tag string) error {
	known, err := d.c.Conversations()
	if err != nil {
		return err
	}
	for _, k := range known {
		if !k.Held {
			continue
		}
		d.rec.say(Record{What: Note, Conv: k.Conv, Seq: k.Local.Seq, Start: k.Local.Start, Install: k.Local.Install, Epoch: k.Local.Epoch, Text: "cursor on disk"})
		for ev, err := range d.c.Events(ctx, k.Conv, 0) {
			if err != nil {
				return err
			}
			r := eventRecord(Held, &ev)
			r.Epoch = k.Local.Epoch
			d.rec.say(r)
		}
	}
	for _, it := range d.c.Outbox() {
		d.rec.say(Record{What: Pending, Conv: it.Conv, Cmid: it.Cmid, Text: tag})
	}
	for _, it := range d.c.Failed() {
		d.rec.say(Record{What: Pending, Conv: it.Conv, Cmid: it.Cmid, Code: string(it.Err.Code), Text: tag})
	}
	d.rec.say(Record{What: Note, Cmid: tag, Text: dumped})
	return nil
}
