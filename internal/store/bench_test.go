package store_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/internal/store"
)

// BenchmarkSend: the batch path with a number of senders in flight over 1,000 conversations, beside the plainest durable
// single-row INSERT over 8 sessions in the same database. Compare ops; both wait for the disk.
func BenchmarkSend(b *testing.B) {
	url := pgtest.URL(b)
	s := benchStore(b, url)
	convs := make([]string, 1000)
	for i := range convs {
		convs[i] = fmt.Sprint("c", i)
	}
	pgtest.Exec(b, url, "insert into posthorn.users (user_id) values ('ana')")
	pgtest.Exec(b, url, "insert into posthorn.conversations (conv_id, kind) select 'c' || i, 'group' from generate_series(0, 999) i")
	pgtest.Exec(b, url, "insert into posthorn.memberships (conv_id, user_id, from_seq, sees_from) select 'c' || i, 'ana', 1, 1 from generate_series(0, 999) i")
	var next atomic.Int64
	for _, inFlight := range []int{8, 64, 256, 1024} {
		b.Run(fmt.Sprintf("batch/%d", inFlight), func(b *testing.B) {
			b.ReportAllocs()
			room := make(chan struct{}, inFlight)
			var wg sync.WaitGroup
			body := "a message of an ordinary length, as people write them"
			for range b.N {
				room <- struct{}{}
				wg.Add(1)
				n := next.Add(1)
				s.Submit(&posthorn.Op{Kind: posthorn.KindMsg, Conv: convs[n%1000], Sender: "ana", DeviceID: 1, Cmid: fmt.Sprint("m", n), Body: &body,
					Done: func(o posthorn.Outcome) {
						if o.Err != nil {
							b.Error(o.Err)
						}
						<-room
						wg.Done()
					}})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
	b.Run("insert/8", func(b *testing.B) { benchInsert(b, url, 8) })
}

func benchStore(b *testing.B, url string) *store.Store {
	s, err := store.New(store.Config{URL: url, Limits: posthorn.DefaultLimits(), Fanout: newListener()})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Stop(context.Background()) })
	return s
}

func benchInsert(b *testing.B, url string, sessions int) {
	pgtest.Exec(b, url, "create table if not exists posthorn.plain (id bigint generated always as identity primary key, conv text, body text, at timestamptz default now())")
	pgtest.Exec(b, url, "grant all on posthorn.plain to public")
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range sessions {
		c, err := pgx.Connect(b.Context(), url)
		if err != nil {
			b.Fatal(err)
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { _ = c.Close(context.Background()) }()
			for left.Add(-1) >= 0 {
				if _, err := c.Exec(context.Background(), "insert into posthorn.plain (conv, body) values ($1, $2)", "c1", "a message of an ordinary length, as people write them"); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkForeignKeys: what foreign keys on events would cost a batch of 256 rows in 256 conversations.
func BenchmarkForeignKeys(b *testing.B) {
	for _, keys := range []bool{false, true} {
		b.Run(fmt.Sprintf("keys=%v", keys), func(b *testing.B) {
			url := pgtest.URL(b)
			pgtest.Exec(b, url, "insert into posthorn.users (user_id) values ('ana')")
			pgtest.Exec(b, url, "insert into posthorn.conversations (conv_id, kind) select 'c' || i, 'group' from generate_series(1, 256) i")
			pgtest.Exec(b, url, "insert into posthorn.memberships (conv_id, user_id, from_seq, sees_from) select 'c' || i, 'ana', 1, 1 from generate_series(1, 256) i")
			if keys {
				pgtest.Exec(b, url, "alter table posthorn.events add foreign key (conv_id) references posthorn.conversations, add foreign key (sender) references posthorn.users")
			}
			c, err := pgx.Connect(b.Context(), url)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close(context.Background()) }()
			for i := range b.N {
				_, err := c.Exec(b.Context(), `select posthorn.send_batch('b', $1::bigint, '', false, null, array_agg('c' || i), array_agg('ana'::text), array_agg(1::bigint),
					array_agg(false), array_agg('m' || $1::bigint || '-' || i), array_agg('a message of an ordinary length, as people write them'::text),
					array_agg(null::text), array_agg(null::bigint)) from generate_series(1, 256) i`, i)
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
