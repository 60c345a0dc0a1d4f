package client

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Errors of the client's own.
var (
	ErrClosed    = errors.New("client: closed")
	ErrOtherUser = errors.New("client: the token is another user's or another device's than the store")
)

// Client is a user's device: a durable log and outbox, kept in step with the server while there is a connection.
// All methods may be called at the same time.
type Client struct {
	cfg    Config
	store  *store
	outbox *outbox
	feeds  feeds

	woken chan struct{} // 1: the outbox has something for the session
	kick  chan struct{} // 1: Reconnect was called
	calls chan struct{} // as many as the application's requests under way

	mu      sync.Mutex // guards what follows
	state   State
	changed chan struct{} // closed and replaced when state, conn or a log changes
	conn    *Conn         // may be used for requests; nil without a session
	cancel  context.CancelFunc
	stopped chan struct{} // closed by run; nil before Start
	closed  bool
	ended   chan struct{} // closed at the end of the first Close
	err     error         // what the first Close returned
}

// Open opens the store and nothing else: reading and sending work from here on, the connection comes with Start. ctx is
// for the opening only. What earlier versions left in the outbox and no server would take is marked failed here (B01).
func Open(ctx context.Context, cfg Config) (*Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	s, err := openStore(cfg.StorePath, cfg.unsynced)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, store: s, woken: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		calls: make(chan struct{}, appCalls), changed: make(chan struct{}), ended: make(chan struct{})}
	if err := c.load(); err != nil {
		_ = s.close()
		return nil, err
	}
	return c, nil
}

// load brings the outbox and what is known of the session into memory.
func (c *Client) load() error {
	var all []keyed
	err := c.store.update(func(t storeTx) (err error) {
		if all, err = t.items(); err != nil {
			return err
		}
		for i := range all {
			it := &all[i].item
			why := it.check()
			if it.overdue(time.Now()) {
				why = errLostTarget()
			}
			if why == nil || it.failed() {
				continue
			}
			it.fail(why)
			if _, err := t.putItem(all[i].key, *it); err != nil {
				return err
			}
		}
		return t.forgetSent()
	}, nil)
	if err != nil {
		return err
	}
	c.outbox = newOutbox(c.cfg.OutboxItems, c.cfg.OutboxBytes, all)
	return c.store.view(func(t storeTx) error {
		id, err := t.identity()
		c.state = State{Phase: Offline, User: id.User, Device: c.cfg.Device, Install: id.Install, Epoch: id.Epoch}
		return err
	})
}

// Start begins to connect, and to connect again whenever the connection ends, until ctx ends or Close is called. A
// second Start does nothing.
func (c *Client) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if c.stopped != nil {
		return nil
	}
	ctx, c.cancel = context.WithCancel(ctx)
	c.stopped = make(chan struct{})
	go c.run(ctx, c.stopped)
	return nil
}

// Close ends the connection, the store and every feed, in this order, and waits for it. Pending items stay in the
// outbox for the next Open. Legal twice and without Start.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.ended
		return c.err
	}
	c.closed = true
	cancel, stopped := c.cancel, c.stopped
	c.mu.Unlock()
	defer close(c.ended)
	if stopped != nil {
		cancel()
		<-stopped
	}
	c.err = c.store.close()
	c.outbox.close()
	c.setState(func(s *State) { s.Phase, s.Err = Closed, nil })
	c.feeds.close()
	return c.err
}

// Reconnect ends whatever keeps the client from connecting: a wait between attempts, or that it stays away because
// another connection of this device replaced it or its token was refused.
func (c *Client) Reconnect() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

func (c *Client) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}
