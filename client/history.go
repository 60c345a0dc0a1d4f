package client

import (
	"context"
	"fmt"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// History asks the server for what lies below before, newest first, for scrolling back above the start mark. It waits
// for a connection, stores nothing and never moves a cursor. limit 0 is the server's default.
func (c *Client) History(ctx context.Context, conv string, before int64, limit int) (posthorn.Page, error) {
	r, err := c.request(ctx, &wire.History{Conv: conv, Before: before, Limit: limit})
	if err != nil {
		return posthorn.Page{}, err
	}
	p, ok := r.(*wire.Page)
	if !ok {
		return posthorn.Page{}, fmt.Errorf("client: history was answered by %s", r.Type())
	}
	return p.Page, nil
}

// Members asks the server who is in a conversation, from after (exclusive, "" at first) on; next is "" at the end.
func (c *Client) Members(ctx context.Context, conv, after string, limit int) (members []posthorn.MemberInfo, next string, err error) {
	r, err := c.request(ctx, &wire.Members{Conv: conv, After: after, Limit: limit})
	if err != nil {
		return nil, "", err
	}
	m, ok := r.(*wire.MemberList)
	if !ok {
		return nil, "", fmt.Errorf("client: members was answered by %s", r.Type())
	}
	return m.Members, m.Next, nil
}

// Typing tells the other members that this user is writing, or is lost: nothing is kept and nothing answers. The server
// passes on one a second.
func (c *Client) Typing(conv string) {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		_ = conn.Write(&wire.Typing{Conv: conv})
	}
}

// request asks on the session's connection, and waits for one where there is none.
func (c *Client) request(ctx context.Context, f wire.Frame) (wire.Frame, error) {
	select {
	case c.calls <- struct{}{}:
		defer func() { <-c.calls }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var conn *Conn
	err := c.await(ctx, func() (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		conn = c.conn
		return conn != nil, nil
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	return conn.Call(ctx, f)
}
