package main

import (
	"fmt"
	"sync"
	"testing"

	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// D2 and P1 over everything: 20 concurrent sends of one cmid over 4 sockets and 2 server processes on one database, 100
// rounds: one row, one seq, one answer without dup, no hole.
func TestD2_TwentySendsOfOneCmid(t *testing.T) {
	const rounds, sends = 100, 20
	url := pgtest.URL(t)
	local := serve(t, url) // makes tokens; takes no part
	var sockets []*peer
	for i := range 2 {
		p := spawn(t, "--database-url", url)
		for j := range 2 {
			c, err := client.Dial(t.Context(), p.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			socket := &peer{Conn: c, t: t}
			device := fmt.Sprint("d", i, j)
			ask[*wire.Welcome](socket, &wire.Hello{Token: local.token(t, "ana", device), Device: device})
			sockets = append(sockets, socket)
		}
	}
	local.token(t, "bo", "phone")
	conv := sockets[0].group("open", "bo")
	for round := range rounds {
		var wg sync.WaitGroup
		replies := make([]wire.Frame, sends)
		errs := make([]error, sends)
		for i := range sends {
			wg.Go(func() {
				body := "x"
				replies[i], errs[i] = sockets[i%len(sockets)].Call(t.Context(), &wire.Send{Conv: conv, Cmid: fmt.Sprint("round", round), Body: &body})
			})
		}
		wg.Wait()
		fresh := 0
		for i, r := range replies {
			s, ok := r.(*wire.Sent)
			if !ok || s.Seq != int64(round)+2 {
				t.Fatalf("round %d: %+v %v", round, r, errs[i])
			}
			if !s.Dup {
				fresh++
			}
		}
		if fresh != 1 {
			t.Fatalf("round %d: %d answers say dup=false", round, fresh)
		}
	}
	rows := pgtest.Query[int64](t, url, "select count(*) from posthorn.events where conv_id = $1", conv)
	head := pgtest.Query[int64](t, url, "select max(seq) from posthorn.events where conv_id = $1", conv)
	if rows != rounds+1 || head != rounds+1 {
		t.Fatalf("%d rows, head %d, want %d of both", rows, head, rounds+1)
	}
}
