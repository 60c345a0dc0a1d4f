package client

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/posthorn/posthorn"
)

// Message is what Send writes. Body and Data may stand together; at least one must be there.
type Message struct {
	Body    string
	Data    []byte // a JSON object; it arrives as these bytes, its numbers untouched
	ReplyTo int64  // the seq that this answers; 0: none
	Cmid    string // the idempotency key, 1–64 bytes; "": a new UUIDv7, which is right unless the program keeps keys of its own
}

// NewConversation is what OpenConversation asks for.
type NewConversation struct {
	Kind    posthorn.ConvKind
	Members []string // the caller is added
	Title   string
	History string // "joined" (default) or "all": what those who come in later may see
	Cmid    string // as in Message; unique per user
}

// Sent is the server's answer to an item.
type Sent struct {
	Conv string
	Seq  int64 // for an opened conversation: its head
	Mid  string
	Dup  bool      // an earlier attempt had been carried out, and this is its place
	At   time.Time // the database's time; zero for an opened conversation
}

// Pending is the handle of an item on its way. The item itself is on disk: it goes on without the handle, after a
// restart too.
type Pending struct {
	Cmid string
	Conv string // "" while a conversation is being opened

	item *item         // as it was asked for
	done chan struct{} // closed by settle
	once sync.Once
	sent Sent
	err  error
}

func newPending(it *item) *Pending {
	return &Pending{Cmid: it.Cmid, Conv: it.Conv, item: it, done: make(chan struct{})}
}

func (p *Pending) settle(s Sent, err error) {
	p.once.Do(func() {
		p.sent, p.err = s, err
		close(p.done)
	})
}

// Done is closed when the item was answered for good, or when the client was closed.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Result waits for Done. The error is a *posthorn.Error where the item failed, and ErrClosed where the client was closed
// first: then the item is still in the outbox.
func (p *Pending) Result() (Sent, error) {
	<-p.done
	return p.sent, p.err
}

// Wait is Result with a context; the item stays in the outbox when the context ends.
func (p *Pending) Wait(ctx context.Context) (Sent, error) {
	select {
	case <-p.done:
		return p.sent, p.err
	case <-ctx.Done():
		return Sent{}, context.Cause(ctx)
	}
}

// Send puts a message into the outbox and returns when it is on disk; it needs no connection. The error is a
// *posthorn.Error where the server would refuse the message whatever happens, and ErrOutboxFull at the bound.
// Messages of one conversation arrive in the order of the calls.
func (c *Client) Send(ctx context.Context, conv string, m Message) (*Pending, error) {
	it := item{Op: OpSend, Conv: conv, Cmid: m.Cmid, Data: bytes.Clone(bytes.TrimSpace(m.Data)), ReplyTo: m.ReplyTo}
	if m.Body != "" {
		it.Body = &m.Body
	}
	return c.enqueue(ctx, it)
}

// Add asks that users come into a conversation.
func (c *Client) Add(ctx context.Context, conv string, users ...string) (*Pending, error) {
	return c.enqueue(ctx, item{Op: OpAdd, Conv: conv, Users: slices.Clone(users)})
}

// Remove asks that users leave a conversation.
func (c *Client) Remove(ctx context.Context, conv string, users ...string) (*Pending, error) {
	return c.enqueue(ctx, item{Op: OpRemove, Conv: conv, Users: slices.Clone(users)})
}

// Leave leaves a conversation.
func (c *Client) Leave(ctx context.Context, conv string) (*Pending, error) {
	return c.enqueue(ctx, item{Op: OpLeave, Conv: conv})
}

// OpenConversation opens a conversation; its id comes with the result.
func (c *Client) OpenConversation(ctx context.Context, n NewConversation) (*Pending, error) {
	return c.enqueue(ctx, item{Op: OpOpen, Cmid: n.Cmid, Users: slices.Clone(n.Members), Kind: string(n.Kind), Title: n.Title, History: n.History})
}

func (c *Client) enqueue(ctx context.Context, it item) (*Pending, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if it.Cmid == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		it.Cmid = id.String()
	}
	it.Queued = time.Now().UnixMilli()
	if err := it.check(); err != nil {
		return nil, err
	}
	p, old, err := c.outbox.reserve(&it)
	if old || err != nil {
		return p, err
	}
	stored := it // what is stored may get a target besides
	var key uint64
	err = c.store.update(func(t storeTx) (err error) {
		if err = t.nameTarget(&stored); err != nil {
			return err
		}
		if err = t.dateTarget(&stored); err != nil {
			return err
		}
		key, err = t.putItem(0, stored)
		return err
	}, func() { c.outbox.put(key, stored) })
	c.outbox.release(&it, err == nil)
	if err != nil {
		return nil, err
	}
	c.wake()
	c.feeds.publish(Change{Kind: ChangeItem, Conv: it.Conv, Item: it.show()})
	return p, nil
}

// nameTarget notes whom reply_to names by sender and cmid, which survive a rewind as the number does not.
func (t storeTx) nameTarget(it *item) error {
	if it.ReplyTo == 0 || it.TargetCmid != "" {
		return nil
	}
	ev, err := t.event(it.Conv, it.ReplyTo)
	if ev != nil {
		it.TargetSender, it.TargetCmid = ev.Sender, ev.Cmid
	}
	return err
}

// dateTarget notes the epoch in which reply_to counts: that of the log which the application has read, also while the
// common past with a newer one is still being looked for.
func (t storeTx) dateTarget(it *item) error {
	if it.ReplyTo == 0 {
		return nil
	}
	rec, known, err := t.cursor(it.Conv)
	it.Epoch = rec.Epoch
	if err != nil || known {
		return err
	}
	id, err := t.identity()
	it.Epoch = id.Epoch
	return err
}
