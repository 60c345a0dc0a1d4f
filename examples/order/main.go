// Command order shows a message that commits with the order it speaks of, or not at all:
//
//	go run ./examples/order
//
// It starts `posthorn serve --dev` on a private PostgreSQL in a temporary folder, follows the conversation as bo does, and
// sends from SQL: one transaction commits and is pushed, one rolls back and leaves nothing. The only goroutine is the one
// that the standard library needs to run the server as a process; it ends with it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "order:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("/tmp", "posthorn-order-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL's own user passes through
		return err
	}
	url, stop, err := server(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	bo, err := follow(ctx, url, filepath.Join(dir, "bo.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bo.Close()) }()
	pushed := bo.Subscribe(16)

	dsn, err := os.ReadFile(filepath.Join(dir, "database-url"))
	if err != nil {
		return err
	}
	db, err := pgx.Connect(ctx, strings.TrimSpace(string(dsn)))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	if _, err := db.Exec(ctx, `create table orders (id bigint primary key, item text not null)`); err != nil {
		return err
	}

	for _, o := range []struct {
		id   int64
		item string
		fail bool
	}{{1, "a post horn", true}, {2, "a saddle", false}} {
		err := place(ctx, db, o.id, o.item, o.fail)
		fmt.Fprintf(out, "order %d, %s: %s\n", o.id, o.item, outcome(err))
	}
	fmt.Fprintln(out, "bo was pushed:", first(ctx, pushed))
	var orders, messages int
	err = db.QueryRow(ctx, `select (select count(*) from orders), (select count(*) from posthorn.events where conv_id = 'lobby' and kind = 'msg')`).Scan(&orders, &messages)
	fmt.Fprintf(out, "in the database: %d order, %d message\n", orders, messages)
	return err
}

// place writes an order and tells the lobby of it, in one transaction. The order's id makes the cmid: however often the
// application tries again, there is one message.
func place(ctx context.Context, db *pgx.Conn, id int64, item string, fail bool) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into orders (id, item) values ($1, $2)`, id, item); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `select posthorn.send('lobby', 'ana', $1, $2, $3)`,
			fmt.Sprintf("order-%d", id), "Ordered: "+item, fmt.Sprintf(`{"order":%d}`, id))
		if err == nil && fail {
			err = errors.New("the card was refused")
		}
		return err
	})
}

func outcome(err error) string {
	if err != nil {
		return "rolled back (" + err.Error() + ")"
	}
	return "committed"
}

// first waits for the first message that is pushed; the rolled-back one must not be it.
func first(ctx context.Context, feed *client.Feed) string {
	for {
		select {
		case c := <-feed.C():
			if c.Kind == client.ChangeEvent && c.Event.Body != nil {
				return fmt.Sprintf("%q with %s", *c.Event.Body, c.Event.Data)
			}
		case <-ctx.Done():
			return "nothing"
		}
	}
}

// follow signs bo in and brings the local log up to date.
func follow(ctx context.Context, url, store string) (*client.Client, error) {
	dev, err := client.DevToken(ctx, url, "bo")
	if err != nil {
		return nil, err
	}
	c, err := client.Open(ctx, client.Config{URL: url, Device: dev.Device, StorePath: store, Token: func(context.Context) (string, error) { return dev.Token, nil }})
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	return c, c.WaitCursor(ctx, "lobby", 1)
}

// server runs `posthorn serve --dev` until stop is called.
func server(ctx context.Context, dir string) (url string, stop func() error, err error) {
	bin, ready := filepath.Join(dir, "posthorn"), filepath.Join(dir, "ready")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "github.com/posthorn/posthorn/cmd/posthorn").CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, bin, "serve", "--dev", "--listen", "127.0.0.1:0", "--data", dir, "--ready-file", ready, "--log-level", "warn")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		return cmd.Wait()
	}
	for ctx.Err() == nil {
		if b, err := os.ReadFile(ready); err == nil {
			return strings.TrimSpace(string(b)), stop, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return "", nil, errors.Join(ctx.Err(), stop())
}
