package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/posthorn/posthorn/client"
)

// A device that reads a conversation, says something and knows that it has arrived. Against a real server the token comes
// from POST /tokens, or with --dev from client.DevToken.
func Example() {
	server := httptest.NewServer(client.FakeServer())
	defer server.Close()
	dir, err := os.MkdirTemp("", "posthorn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	c, err := client.Open(ctx, client.Config{
		URL:       server.URL,
		Token:     func(context.Context) (string, error) { return "good", nil },
		Device:    "laptop",
		StorePath: filepath.Join(dir, "laptop.db"),
		Start:     client.Tail(100),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	// The outbox is on disk: this is sent as soon as there is a connection, also after a crash.
	hello, err := c.Send(ctx, "lobby", client.Message{Body: "hello, lobby"})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Start(ctx); err != nil {
		log.Fatal(err)
	}
	sent, err := hello.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored as", sent.Seq)

	// The log is on disk too, and has no holes.
	if err := c.WaitCursor(ctx, "lobby", sent.Seq); err != nil {
		log.Fatal(err)
	}
	for ev, err := range c.Events(ctx, "lobby", 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %s: %s\n", ev.Seq, ev.Sender, *ev.Body)
	}
	// Output:
	// stored as 3
	// 1 bob: lobby 1
	// 2 bob: lobby 2
	// 3 ann: hello, lobby
}
