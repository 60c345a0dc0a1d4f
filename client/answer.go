package client

import (
	"fmt"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// answer decides what the server's answer does to an item, by the classes of protocol.md. The item leaves the outbox, or
// is marked failed, in the transaction that stores the event which the answer stands for.
func (s *session) answer(ln *lane, key uint64, it *item, f wire.Frame) effect {
	switch f := f.(type) {
	case *wire.Sent:
		return s.itemSent(ln, key, it, f)
	case *wire.Opened:
		return s.itemOpened(ln, key, it, f)
	case *wire.Error:
		if f.Code.Class() == posthorn.ItemTerminal {
			return s.itemRefused(ln, key, it, f)
		}
		return effect{then: func() { s.notNow(ln, it, f) }}
	}
	return effect{then: func() { s.unexpected(f) }}
}

// itemSent: the sent of a message stands for the own event, which this connection is not pushed, and moves the cursor as
// an event does. One with dup:true ends the item and nothing more. A change of membership ends the item too, but its event
// is synced: only the server knows whom it left out, those who were members already.
func (s *session) itemSent(ln *lane, key uint64, it *item, f *wire.Sent) effect {
	sent := Sent{Conv: f.Conv, Seq: f.Seq, Mid: f.Mid, Dup: f.Dup, At: time.UnixMilli(f.At).UTC()}
	own := it.Op == OpSend && !f.Dup
	return effect{
		events: own,
		store: func(l *ledger) error {
			if ok, err := l.t.takeItem(key); err != nil || !ok {
				return err // not ok: another sending of it was answered in this burst
			}
			if it.Op == OpSend {
				rec := sentRecord{Key: key, Item: *it, Seq: f.Seq, Mid: f.Mid, At: f.At, Epoch: f.Epoch, Stored: time.Now().UnixMilli()}
				if err := l.t.putSent(0, rec); err != nil {
					return err
				}
			}
			if !own {
				return nil
			}
			ev := it.own(s.w.User, f)
			return l.event(f.Prev, &ev, eventRecord(f.Prev, ev))
		},
		then: func() {
			s.done(ln, key, it, sent)
			if c := s.conv(f.Conv); !own && f.Seq > c.rec.Seq {
				s.want(c, false) // it is there, and not here
			}
		},
	}
}

func (s *session) itemOpened(ln *lane, key uint64, it *item, f *wire.Opened) effect {
	return effect{
		store: func(l *ledger) error {
			_, err := l.t.takeItem(key)
			return err
		},
		then: func() {
			s.done(ln, key, it, Sent{Conv: f.Conv, Seq: f.Head, Dup: f.Dup})
			c := s.conv(f.Conv)
			c.head = max(c.head, f.Head)
			if c.head > c.rec.Seq {
				s.want(c, false)
			}
		},
	}
}

func (s *session) done(ln *lane, key uint64, it *item, sent Sent) {
	s.c.outbox.remove(key)
	s.c.outbox.resolve(it.Cmid, sent, nil)
	s.next(ln)
	s.c.feeds.publish(Change{Kind: ChangeSent, Conv: sent.Conv, Item: it.show(), Sent: sent})
}

// itemRefused: the server will never take this item. It stays, marked, until the application discards it.
func (s *session) itemRefused(ln *lane, key uint64, it *item, f *wire.Error) effect {
	marked := *it
	marked.fail(refusal(f))
	return effect{
		store: func(l *ledger) error {
			_, err := l.t.putItem(key, marked)
			return err
		},
		then: func() {
			s.c.outbox.put(key, marked)
			s.c.itemFailed(&marked)
			s.next(ln)
		},
	}
}

// notNow: the item stays as it is. A session that must be renewed ends; a conversation whose history was rewound is
// looked at first; everything else is tried again with the same cmid.
func (s *session) notNow(ln *lane, it *item, f *wire.Error) {
	switch f.Code.Class() {
	case posthorn.SessionTerminal:
		s.fail(refusal(f))
	case posthorn.Resync:
		s.heal(s.conv(it.Conv))
		s.repeat(ln, f)
	default:
		s.repeat(ln, f)
	}
}

// failItem marks an item failed outside of a burst.
func (s *session) failItem(key uint64, it *item, why error) {
	if err := s.c.failItem(key, *it, why); err != nil {
		s.fail(err)
	}
}

func (c *Client) failItem(key uint64, it item, why error) error {
	it.fail(why)
	err := c.store.update(func(t storeTx) error {
		_, err := t.putItem(key, it)
		return err
	}, func() { c.outbox.put(key, it) })
	if err == nil {
		c.itemFailed(&it)
	}
	return err
}

func (c *Client) itemFailed(it *item) {
	c.cfg.Logger.Warn("an item was refused", "op", it.Op, "conv", it.Conv, "cmid", it.Cmid, "code", it.Code)
	c.outbox.resolve(it.Cmid, Sent{}, it.err())
	c.feeds.publish(Change{Kind: ChangeItem, Conv: it.Conv, Item: it.show()})
}

// Discard removes a failed item for good.
func (c *Client) Discard(cmid string) error {
	key, it := c.outbox.find(cmid)
	switch {
	case it == nil:
		return fmt.Errorf("client: the outbox holds no item %q", cmid)
	case !it.failed():
		return fmt.Errorf("client: item %q is still on its way", cmid)
	}
	return c.store.update(func(t storeTx) error {
		_, err := t.takeItem(key)
		return err
	}, func() { c.outbox.remove(key) })
}
