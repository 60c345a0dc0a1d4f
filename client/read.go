package client

import (
	"context"
	"iter"

	"github.com/posthorn/posthorn"
)

// Events goes through the local log of a conversation above after, oldest first: the contiguous part only, up to where
// the cursor stands when each stretch is read. Events may be called and the loop may write while it goes.
func (c *Client) Events(ctx context.Context, conv string, after int64) iter.Seq2[posthorn.Event, error] {
	return func(yield func(posthorn.Event, error) bool) {
		for {
			var evs []posthorn.Event
			err := c.store.view(func(t storeTx) (err error) {
				evs, err = t.events(conv, after)
				return err
			})
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(posthorn.Event{}, err)
				return
			}
			if len(evs) == 0 {
				return
			}
			for _, ev := range evs {
				if !yield(ev, nil) {
					return
				}
			}
			after = evs[len(evs)-1].Seq
		}
	}
}

// Cursor is how far a conversation is held without a hole.
type Cursor struct {
	Seq     int64
	Start   int64 // nothing at or below it is held
	Epoch   int64 // Seq means nothing outside of its epoch and install
	Install int64
	Acked   int64 // what the server last said that it has stored; may be behind what it has
}

// Cursor gives a conversation's cursor; false where the conversation is new to this device.
func (c *Client) Cursor(conv string) (Cursor, bool, error) {
	var rec cursor
	var known bool
	err := c.store.view(func(t storeTx) (err error) {
		rec, known, err = t.cursor(conv)
		return err
	})
	return rec.show(), known, err
}

func (r cursor) show() Cursor {
	return Cursor{Seq: r.Seq, Start: r.Start, Epoch: r.Epoch, Install: r.Install, Acked: r.Acked}
}

// WaitCursor waits until a conversation is held without a hole up to seq.
func (c *Client) WaitCursor(ctx context.Context, conv string, seq int64) error {
	return c.await(ctx, func() (bool, error) {
		cur, known, err := c.Cursor(conv)
		return known && cur.Seq >= seq, err
	})
}

// WaitOnline waits until a session is up.
func (c *Client) WaitOnline(ctx context.Context) error {
	return c.await(ctx, func() (bool, error) { return c.State().Phase == Online, nil })
}

// Conversation is one as this device knows it: the entry that the server last told, and the local cursor.
type Conversation struct {
	posthorn.Entry
	Local Cursor
	Held  bool // Local is set: something of it is here
}

// Conversations lists what is known, by id.
func (c *Client) Conversations() ([]Conversation, error) {
	var out []Conversation
	err := c.store.view(func(t storeTx) error {
		entries, err := t.entries()
		if err != nil {
			return err
		}
		for _, e := range entries {
			rec, known, err := t.cursor(e.Conv)
			if err != nil {
				return err
			}
			out = append(out, Conversation{Entry: e, Local: rec.show(), Held: known})
		}
		return nil
	})
	return out, err
}

// Outbox lists what is not answered yet, in the order in which it was queued.
func (c *Client) Outbox() []Item {
	return c.show(func(it *item) bool { return !it.failed() })
}

// Failed lists what was refused for good and not discarded yet.
func (c *Client) Failed() []Item {
	return c.show((*item).failed)
}

func (c *Client) show(pick func(*item) bool) []Item {
	var out []Item
	for _, x := range c.outbox.list(pick) {
		out = append(out, x.show())
	}
	return out
}
