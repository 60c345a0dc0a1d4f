package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/posthorn/posthorn/client"
)

// follower writes what the local log gains. The feed only wakes it: it reads from the log, so a slow reader of its output
// costs neither events nor memory.
type follower struct {
	client  *client.Client
	out     io.Writer
	only    []string
	all     bool
	written map[string]int64 // up to where each conversation was written
	heads   *listedHeads
}

func (f *follower) follow(ctx context.Context) error {
	feed := f.client.Subscribe(256)
	defer feed.Close()
	dirty, err := f.begin()
	if err != nil {
		return err
	}
	if err := f.client.Start(ctx); err != nil {
		return err
	}
	for {
		for _, conv := range slices.Sorted(maps.Keys(dirty)) {
			if err := f.write(ctx, conv); err != nil {
				return err
			}
		}
		clear(dirty)
		select {
		case ch := <-feed.C():
			err = f.note(ch, dirty)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for more := true; more && err == nil; { // what came meanwhile is written in one go
			select {
			case ch := <-feed.C():
				err = f.note(ch, dirty)
			default:
				more = false
			}
		}
		if err != nil {
			return err
		}
	}
}

// begin notes what the log holds at the start, which is written with --from-start only.
func (f *follower) begin() (dirty map[string]bool, err error) {
	dirty = map[string]bool{}
	known, err := f.client.Conversations()
	for _, k := range known {
		switch {
		case f.all:
			dirty[k.Conv] = true
		case k.Held:
			f.written[k.Conv] = k.Local.Seq
		}
	}
	return dirty, err
}

// note takes a change; the error is one that connecting again does not change.
func (f *follower) note(ch client.Change, dirty map[string]bool) error {
	switch ch.Kind {
	case client.ChangeEvent:
		dirty[ch.Conv] = true
	case client.ChangeReset:
		cur, _, err := f.client.Cursor(ch.Conv)
		f.cut(ch.Conv, cur.Seq)
		return err
	case client.ChangeState:
		return gaveUp(ch.State)
	case client.ChangeOverflow: // anything may be what was missed
		known, err := f.client.Conversations()
		for _, k := range known {
			f.cut(k.Conv, k.Local.Seq)
			dirty[k.Conv] = true
		}
		return errors.Join(err, gaveUp(f.client.State()))
	}
	return nil
}

// cut follows a log that was cut back to the common past: numbers above it are given again, to other events.
func (f *follower) cut(conv string, seq int64) {
	if n, ok := f.written[conv]; ok {
		f.written[conv] = min(n, seq)
	}
}

// gaveUp tells that the client waits for somebody to do something.
func gaveUp(s client.State) error {
	switch s.Phase {
	case client.Unauthorized:
		return fmt.Errorf("the sign-in was refused: %s", whyOffline(s.Err))
	case client.Replaced:
		return errors.New("this device is connected elsewhere; give this one a name of its own with --device NAME")
	}
	return nil
}

func (f *follower) write(ctx context.Context, conv string) error {
	if len(f.only) > 0 && !slices.Contains(f.only, conv) {
		return nil
	}
	after, begun := f.written[conv]
	if !begun && !f.all {
		after = f.heads.of(conv)
	}
	var lines []byte
	for ev, err := range f.client.Events(ctx, conv, after) {
		if err != nil {
			return err
		}
		lines = appendLine(lines, &ev)
		f.written[conv] = ev.Seq
		if len(lines) > 64<<10 {
			if _, err := f.out.Write(lines); err != nil {
				return err
			}
			lines = lines[:0]
		}
	}
	_, err := f.out.Write(lines)
	return err
}
