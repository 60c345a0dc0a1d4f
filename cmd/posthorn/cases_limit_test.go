package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// Many conversations are synced at once, and each has its own page, its own next cursor and its own more: what one of them
// reaches says nothing about the next.
func TestB11_EachConversationHasItsOwnLimit(t *testing.T) {
	n := serve(t, pgtest.URL(t))
	ana, bo := n.connect(t, "ana", "phone"), n.connect(t, "bo", "phone")
	news := map[string]int64{}
	var convs []string
	for i, count := range []int{250, 3, 0, 120} {
		conv := ana.group(fmt.Sprint("open", i), "bo")
		ask[*wire.Acked](bo, &wire.Ack{Conv: conv, Seq: 1})
		write(t, n.url, conv, "ana", "m", count)
		convs, news[conv] = append(convs, conv), int64(count)
	}
	seed := rand.Uint64()
	shuffle := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds(6, 200) {
		name := fmt.Sprintf("order %d of seed %d", round, seed)
		if round == 0 {
			name = "order as made"
		} else {
			shuffle.Shuffle(len(convs), func(i, j int) { convs[i], convs[j] = convs[j], convs[i] })
		}
		t.Run(name, func(t *testing.T) {
			bo.t = t
			bulkSync(t, bo, convs, news)
		})
	}
}

// bulkSync asks for all that have more, without waiting in between, until none has.
func bulkSync(t *testing.T, p *peer, convs []string, news map[string]int64) {
	t.Helper()
	const limit = 100
	at := map[string]int64{}
	for _, conv := range convs {
		at[conv] = 1
	}
	for open := convs; len(open) > 0; {
		for _, conv := range open {
			if err := p.Write(&wire.Sync{RID: conv, Conv: conv, After: at[conv], Limit: limit}); err != nil {
				t.Fatal(err)
			}
		}
		more := map[string]bool{}
		for range open {
			f := frame[*wire.Page](p, nil)
			conv, after := f.RID, at[f.RID]
			if f.Page.Conv != conv || len(f.Page.Events) > limit || len(f.Page.Skip) > 0 || f.Page.Truncated {
				t.Fatalf("asked for %s after %d: %+v", conv, after, f.Page)
			}
			for _, ev := range f.Page.Events {
				if after++; ev.Seq != after || ev.Conv != conv || ev.Kind != posthorn.KindMsg {
					t.Fatalf("%s: want %d, got %s %d", conv, after, ev.Conv, ev.Seq)
				}
			}
			head := 1 + news[conv]
			if f.Page.Upto != after || f.Page.Head != head || f.Page.More != (after < head) || after != min(head, at[conv]+limit) {
				t.Fatalf("%s: upto %d, head %d, more %v after %d of %d", conv, f.Page.Upto, f.Page.Head, f.Page.More, after, head)
			}
			at[conv], more[conv] = after, f.Page.More
		}
		var next []string
		for _, conv := range open {
			if more[conv] {
				next = append(next, conv)
			}
		}
		open = next
	}
	for conv, count := range news {
		if at[conv] != 1+count {
			t.Fatalf("%s ended at %d, want %d", conv, at[conv], 1+count)
		}
	}
}
