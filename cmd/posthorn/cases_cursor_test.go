package main

import (
	"fmt"
	"testing"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/pgtest"
	"github.com/posthorn/posthorn/wire"
)

// Cursor values that no honest client sends: malformed ones are BAD_FRAME, those ahead CURSOR_AHEAD, and nothing moves.
func TestB14_CursorValues(t *testing.T) {
	n, ana, bo, conv := pair(t)
	for i := range 6 {
		ana.send(conv, fmt.Sprint("m", i), "x")
	}
	ask[*wire.Acked](bo, &wire.Ack{Conv: conv, Seq: 3})
	stored := func() int64 {
		return pgtest.Query[int64](t, n.url, "select delivered_seq from posthorn.device_cursors where conv_id = $1", conv)
	}
	bad := []string{"9223372036854775807", "9223372036854775808", "-1", "-0", "null", `"7"`, "7.0", "7e0", "1e3", "true", "9007199254740992"}
	fields := map[string]string{
		"ack":     `{"t":"ack","rid":"r","conv":%q,"seq":%s}`,
		"sync":    `{"t":"sync","rid":"r","conv":%q,"after":%s}`,
		"history": `{"t":"history","rid":"r","conv":%q,"before":%s}`,
		"reply":   `{"t":"send","rid":"r","conv":%q,"cmid":"bad","body":"x","reply_to":%s}`,
		"limit":   `{"t":"sync","rid":"r","conv":%q,"after":0,"limit":%s}`,
		"tail":    `{"t":"sync","rid":"r","conv":%q,"tail":%s}`,
		"pair":    `{"t":"confirm","rid":"r","conv":%q,"pairs":[[%s,"x"]]}`,
		"rv":      `{"t":"ack","rid":"r","conv":%q,"seq":1,"rv":%s}`,
	}
	for name, format := range fields {
		t.Run(name, func(t *testing.T) {
			bo.t = t
			for _, v := range bad {
				if e, ok := bo.raw(fmt.Sprintf(format, conv, v)).(*wire.Error); !ok || e.Code != posthorn.CodeBadFrame || e.RID != "r" {
					t.Errorf("%s: %+v", v, e)
				}
			}
		})
	}
	bo.t = t
	for _, text := range []string{`{"t":"ack","rid":"r","conv":%q}`, `{"t":"sync","rid":"r","conv":%q}`, `{"t":"sync","rid":"r","conv":%q,"after":0,"limit":0}`,
		`{"t":"sync","rid":"r","conv":%q,"after":0,"limit":-1}`} {
		if e, ok := bo.raw(fmt.Sprintf(text, conv)).(*wire.Error); !ok || e.Code != posthorn.CodeBadFrame {
			t.Errorf("%s: %+v", text, e)
		}
	}
	if got := ask[*wire.Acked](bo, &wire.Ack{Conv: conv, Seq: 0}); got.Delivered != 3 {
		t.Errorf("ack 0: %+v", got)
	}
	if got := ask[*wire.Page](bo, &wire.Sync{Conv: conv, After: 0, Limit: 1_000_000_000}); len(got.Page.Events) != 7 || got.Page.More {
		t.Errorf("a large limit: %d events", len(got.Page.Events))
	}
	for _, ahead := range []int64{8, posthorn.MaxSeq} {
		want := fmt.Sprintf("seq=%d head=7", ahead)
		if e := bo.refused(&wire.Ack{Conv: conv, Seq: ahead}, posthorn.CodeCursorAhead); e.Msg != want {
			t.Errorf("ack: %q, want %q", e.Msg, want)
		}
		if e := bo.refused(&wire.Sync{Conv: conv, After: ahead}, posthorn.CodeCursorAhead); e.Msg != want {
			t.Errorf("sync: %q, want %q", e.Msg, want)
		}
	}
	if d := stored(); d != 3 {
		t.Fatalf("the cursor moved to %d", d)
	}
	// A wild ack does not take a good one of the same flush with it.
	for rid, seq := range map[string]int64{"good": 5, "wild": 99} {
		if err := bo.Write(&wire.Ack{RID: rid, Conv: conv, Seq: seq}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		f := frame(bo, func(f wire.Frame) bool { return f.Type() == "acked" || f.Type() == "error" })
		switch f := f.(type) {
		case *wire.Acked:
			if f.RID != "good" || f.Delivered != 5 {
				t.Errorf("good: %+v", f)
			}
		case *wire.Error:
			if f.RID != "wild" || f.Code != posthorn.CodeCursorAhead {
				t.Errorf("wild: %+v", f)
			}
		}
	}
	if d := stored(); d != 5 {
		t.Fatalf("the good ack stored %d", d)
	}
}

// D4, in the words: ack 1 after 7 answers 7.
func TestD4_DeliveredNeverFalls(t *testing.T) {
	_, ana, bo, conv := pair(t)
	for i := range 6 {
		ana.send(conv, fmt.Sprint("m", i), "x")
	}
	ask[*wire.Acked](bo, &wire.Ack{Conv: conv, Seq: 7})
	for _, seq := range []int64{1, 0, 7} {
		if a := ask[*wire.Acked](bo, &wire.Ack{Conv: conv, Seq: seq}); a.Delivered != 7 {
			t.Errorf("ack %d: %+v", seq, a)
		}
	}
	bo.refused(&wire.Ack{Conv: conv, Seq: 107}, posthorn.CodeCursorAhead)
}

// Seqs end below 2^53, so that a JavaScript number holds each of them; the last ones work like any other.
func TestB72_SeqsNear2To53(t *testing.T) {
	n, ana, bo, conv := pair(t)
	const last = posthorn.MaxSeq
	pgtest.Exec(t, n.url, "update posthorn.conversations set next_seq = $2, floor_seq = $2 where conv_id = $1", conv, last-1)
	pgtest.Exec(t, n.url, "delete from posthorn.events where conv_id = $1", conv)
	ask[*wire.Subbed](bo, &wire.Sub{})
	for i, want := range []int64{last - 1, last} {
		if s := ana.send(conv, fmt.Sprint("m", i), "x"); s.Seq != want || s.Prev != want-1 {
			t.Fatalf("sent: %+v, want %d", s, want)
		}
		if ev := frame[*wire.Event](bo, nil); ev.Ev.Seq != want || ev.Prev != want-1 {
			t.Fatalf("event: %+v, want %d", ev, want)
		}
	}
	page := ask[*wire.Page](bo, &wire.Sync{Conv: conv, After: 0})
	if !page.Page.Truncated || len(page.Page.Events) != 2 || page.Page.Upto != last {
		t.Fatalf("page: %+v", page.Page)
	}
	if a := ask[*wire.Acked](bo, &wire.Ack{Conv: conv, Seq: last}); a.Delivered != last {
		t.Fatalf("acked: %+v", a)
	}
	body := "one too many"
	ana.refused(&wire.Send{Conv: conv, Cmid: "full", Body: &body}, posthorn.CodeTooLarge)
	ana.refused(&wire.Change{T: "leave", Conv: conv, Cmid: "full2"}, posthorn.CodeTooLarge)
	if e, ok := bo.raw(`{"t":"ack","rid":"r","conv":"` + conv + `","seq":9007199254740993}`).(*wire.Error); !ok || e.Code != posthorn.CodeBadFrame {
		t.Fatalf("2^53+1: %+v", e)
	}
	if e, ok := n.tryInsert(t, conv); ok {
		t.Fatalf("the table took a seq of 2^53: %v", e)
	}
}

func (n *node) tryInsert(t *testing.T, conv string) (error, bool) {
	t.Helper()
	_, err := n.store.Pool().Exec(t.Context(), `insert into posthorn.events (conv_id, seq, kind, mid, sender, cmid, content_mac, msg_no, at)
		values ($1, 9007199254740992, 'msg', gen_random_uuid(), '', 'x', '', 1, now())`, conv)
	return err, err == nil
}

// A device new to a conversation begins near its end; the mark moves up until the first ack and stays from then on.
func TestStartMark(t *testing.T) {
	_, ana, bo, conv := pair(t)
	send := func(from, to int) {
		for i := from; i <= to; i++ {
			ana.send(conv, fmt.Sprint("m", i), "x")
		}
	}
	tail := func(n int) *wire.Page { return ask[*wire.Page](bo, &wire.Sync{Conv: conv, Tail: n}) }
	send(2, 10)
	if p := tail(3); p.Page.Start != 7 || len(p.Page.Events) != 3 || p.Page.Upto != 10 {
		t.Fatalf("first tail: %+v", p.Page)
	}
	if p := tail(5); p.Page.Start != 7 || len(p.Page.Events) != 3 {
		t.Fatalf("the mark never moves down: start %d", p.Page.Start)
	}
	send(11, 15)
	if p := tail(2); p.Page.Start != 13 || len(p.Page.Events) != 2 {
		t.Fatalf("it moves up before the first ack: %+v", p.Page)
	}
	ask[*wire.Acked](bo, &wire.Ack{Conv: conv, Seq: 15})
	send(16, 20)
	if p := tail(1); p.Page.Start != 13 || len(p.Page.Events) != 7 {
		t.Fatalf("it stays after the first ack: start %d, %d events", p.Page.Start, len(p.Page.Events))
	}
	// What lies below comes by history, which moves nothing.
	if h := ask[*wire.Page](bo, &wire.History{Conv: conv, Before: 14, Limit: 5}); len(h.Page.Events) != 5 || h.Page.Events[0].Seq != 13 || !h.Page.More {
		t.Fatalf("history: %+v", h.Page)
	}
}
