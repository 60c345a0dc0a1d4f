package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// run is the client's goroutine: one connection after the other, with waits between.
func (c *Client) run(ctx context.Context, stopped chan<- struct{}) {
	defer close(stopped)
	waits := c.cfg.Backoff.waits()
	refused := 0 // tokens refused since the last welcome
	for {
		began := time.Now()
		welcomed, err := c.connect(ctx)
		if ctx.Err() != nil {
			c.setState(func(s *State) { s.Phase, s.Err, s.Gateway, s.Next = Offline, context.Cause(ctx), "", time.Time{} })
			return
		}
		if welcomed {
			refused = 0
			if time.Since(began) > c.cfg.Backoff.Max {
				waits.Reset() // a session that held; one that breaks at once goes on waiting longer
			}
		}
		e := posthorn.AsError(err)
		switch e.Code {
		case posthorn.CodeUnauthenticated:
			refused++
		case posthorn.CodeStaleInstall:
			err = errors.Join(err, c.newInstall())
		}
		c.cfg.Logger.Info("connection ended", "err", err)
		if phase := stays(e.Code, refused, err); phase != Offline {
			if !c.stayAway(ctx, phase, err) {
				return
			}
			refused = 0
			waits.Reset()
			continue
		}
		c.rest(ctx, pause(waits.NextBackOff(), e, welcomed), err)
	}
}

// stays tells whether connecting again by itself would be wrong, and in which phase the client then waits for Reconnect.
// A refused token is renewed once.
func stays(code posthorn.Code, refused int, err error) Phase {
	switch {
	case code == posthorn.CodeReplaced:
		return Replaced
	case errors.Is(err, ErrOtherUser), code == posthorn.CodeUnauthenticated && refused > 1:
		return Unauthorized
	}
	return Offline
}

// pause is how long to wait before the next attempt. A server that says goodbye to all its clients tells them over how
// long to spread; one that refuses for the moment tells when to come back.
func pause(wait time.Duration, e *posthorn.Error, welcomed bool) time.Duration {
	if e.Retry <= 0 {
		return wait
	}
	if welcomed {
		return rand.N(e.Retry + 1)
	}
	return e.Retry + wait/2
}

func (c *Client) stayAway(ctx context.Context, phase Phase, err error) bool {
	select {
	case <-c.kick: // from before
	default:
	}
	c.setState(func(s *State) { s.Phase, s.Err, s.Gateway, s.Next = phase, err, "", time.Time{} })
	select {
	case <-c.kick:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *Client) rest(ctx context.Context, d time.Duration, err error) {
	c.setState(func(s *State) { s.Phase, s.Err, s.Gateway, s.Next = Offline, err, "", time.Now().Add(d) })
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.kick:
	case <-ctx.Done():
	}
}

// connect makes one connection, holds its session and returns when it ends, with the reason. welcomed tells whether it
// came to a session.
func (c *Client) connect(ctx context.Context) (welcomed bool, err error) {
	c.setState(func(s *State) { s.Phase, s.Next = Connecting, time.Time{} })
	hello, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	token, err := c.cfg.Token(hello)
	if err != nil {
		return false, fmt.Errorf("client: token: %w", err)
	}
	conn, err := Dial(hello, c.cfg.URL, &DialOptions{HTTPClient: c.cfg.HTTPClient, Tracer: c.cfg.Tracer})
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }() // why it ended is told by ended
	w, err := c.greet(hello, conn, token)
	if err != nil {
		return false, err
	}
	s, err := c.newSession(conn, w)
	if err != nil {
		return true, err
	}
	c.setState(func(st *State) {
		*st = State{Phase: Online, User: w.User, Device: w.Device, Install: w.InstallEpoch, Epoch: w.Epoch, Gateway: w.Gateway}
	})
	c.useConn(conn)
	defer c.useConn(nil)
	return true, conn.ended(s.run(ctx))
}

// greet says hello and puts the new nonce on disk. Nothing is sent before it is there: until a frame arrives the server
// takes the previous nonce too, so that a crash in between is no clone (I1).
func (c *Client) greet(ctx context.Context, conn *Conn, token string) (*wire.Welcome, error) {
	var id identity
	err := c.store.view(func(t storeTx) (err error) {
		id, err = t.identity()
		return err
	})
	if err != nil {
		return nil, err
	}
	h := &wire.Hello{Token: token, Device: c.cfg.Device, Resume: id.Resume, Epoch: max(id.Epoch, id.Newest)}
	if id.Install != 0 {
		h.Install = &id.Install
	}
	w, err := conn.Hello(ctx, h)
	if err != nil {
		return nil, err
	}
	if w.Device != c.cfg.Device || id.User != "" && w.User != id.User {
		return nil, fmt.Errorf("%w: %s on %s", ErrOtherUser, w.User, w.Device)
	}
	return w, c.store.update(func(t storeTx) error {
		if id.Install != w.InstallEpoch {
			// Another install than the store's: this device starts anew and holds nothing of what that one confirmed.
			if err := t.forgetInstall(); err != nil {
				return err
			}
		}
		if id.Epoch != w.Epoch {
			if err := t.dropUnbegun(); err != nil {
				return err
			}
		}
		return t.putIdentity(identity{User: w.User, Device: w.Device, Install: w.InstallEpoch, Resume: w.Resume, Epoch: w.Epoch,
			Newest: max(id.Newest, id.Epoch, w.Epoch)})
	}, nil)
}

// newInstall makes the next hello ask for a new install: this one was replaced by a newer one of the same device.
func (c *Client) newInstall() error {
	return c.store.update(func(t storeTx) error {
		id, err := t.identity()
		if err != nil {
			return err
		}
		id.Install, id.Resume = 0, ""
		return t.putIdentity(id)
	}, nil)
}
