package client

import (
	"context"
	"time"
)

// Phase of the connection.
type Phase int

const (
	Offline      Phase = iota // not started, or between attempts
	Connecting                // dialling, or waiting for the welcome
	Online                    // a session is up
	Replaced                  // another connection of this device took over; stays away until Reconnect
	Unauthorized              // a fresh token was refused too; stays away until Reconnect
	Closed
)

func (p Phase) String() string {
	return [...]string{"offline", "connecting", "online", "replaced", "unauthorized", "closed"}[p]
}

// State is the connection's state.
type State struct {
	Phase   Phase
	Err     error     // why the last connection ended or could not be had; nil while online
	Next    time.Time // Offline: when the next attempt is made
	User    string    // who this is, known since the first welcome
	Device  string
	Install int64
	Epoch   int64
	Gateway string // Online: the gateway's name
}

// State gives the state now; Subscribe tells when it changes.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *Client) setState(change func(*State)) {
	c.mu.Lock()
	change(&c.state)
	s := c.state
	c.signal()
	c.mu.Unlock()
	c.cfg.Tracer.State(s)
	c.feeds.publish(Change{Kind: ChangeState, State: s})
}

// signal wakes what waits for a change; c.mu is held.
func (c *Client) signal() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// touched tells those who wait that a log has grown.
func (c *Client) touched() {
	c.mu.Lock()
	c.signal()
	c.mu.Unlock()
}

// await waits until ready says so; it is asked again at every change.
func (c *Client) await(ctx context.Context, ready func() (bool, error)) error {
	for {
		c.mu.Lock()
		changed, closed := c.changed, c.state.Phase == Closed
		c.mu.Unlock()
		ok, err := ready()
		switch {
		case ok || err != nil:
			return err
		case closed:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// useConn sets the connection for the requests of the application.
func (c *Client) useConn(conn *Conn) {
	c.mu.Lock()
	c.conn = conn
	c.signal()
	c.mu.Unlock()
}
