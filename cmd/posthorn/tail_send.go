package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
)

// sendAhead is how many lines may be on their way; reading pauses there.
const sendAhead = 128

// sendLines sends each line as a message and returns when all were answered. A line that was refused is told and given up,
// the others go on; the error at the end says so. What is not answered when the user interrupts stays in the outbox.
func (c *tailCmd) sendLines(ctx context.Context, cl *client.Client, in io.Reader) error {
	feed := cl.Subscribe(1) // wakes for a sign-in that is refused: then no answer comes
	defer feed.Close()
	if err := cl.Start(ctx); err != nil {
		return err
	}
	s := &lineSender{client: cl, feed: feed}
	lines := readLines(ctx, in)
	for {
		var line numbered
		var ok bool
		select {
		case line, ok = <-lines:
		case <-ctx.Done():
			return s.interrupted()
		}
		if !ok {
			break
		}
		if line.err != nil {
			return errors.Join(line.err, s.wait(ctx, 0))
		}
		if line.text == "" {
			continue // a message has a body
		}
		p, err := cl.Send(ctx, c.Send, client.Message{Body: line.text})
		if err != nil {
			s.refused(line.n, err)
			continue
		}
		s.pending = append(s.pending, flying{line.n, p})
		if err := s.wait(ctx, sendAhead); err != nil {
			return err
		}
	}
	if err := s.wait(ctx, 0); err != nil {
		return err
	}
	if s.failed > 0 {
		return fmt.Errorf("%s not sent", plural(s.failed, "line was", "lines were"))
	}
	return nil
}

// lineSender holds what is on its way, oldest first.
type lineSender struct {
	client  *client.Client
	feed    *client.Feed
	pending []flying
	failed  int
}

type flying struct {
	line int
	*client.Pending
}

// wait returns when no more than most are on their way.
func (s *lineSender) wait(ctx context.Context, most int) error {
	for len(s.pending) > most {
		p := s.pending[0]
		select {
		case <-p.Done():
		case <-s.feed.C():
			if err := gaveUp(s.client.State()); err != nil {
				return fmt.Errorf("%w; %s", err, s.kept())
			}
			continue
		case <-ctx.Done():
			return s.interrupted()
		}
		if _, err := p.Result(); err != nil {
			s.refused(p.line, err)
			if err := s.client.Discard(p.Cmid); err != nil {
				return err
			}
		}
		s.pending = s.pending[1:]
	}
	return nil
}

func (s *lineSender) refused(line int, err error) {
	s.failed++
	fmt.Fprintf(os.Stderr, "posthorn: line %d: %s\n", line, whatFailed(err))
}

func (s *lineSender) interrupted() error { return errors.New("interrupted; " + s.kept()) }

func (s *lineSender) kept() string {
	return plural(len(s.client.Outbox()), "line waits", "lines wait") + " in the outbox for the next start"
}

type numbered struct {
	n    int
	text string
	err  error
}

// readLines reads on its own goroutine, since a read from a terminal or pipe cannot be interrupted: it ends with the input
// or with the process. A line that could not be a message is refused as one that is too long to be one.
func readLines(ctx context.Context, in io.Reader) <-chan numbered {
	lines := make(chan numbered)
	go func() {
		defer close(lines)
		br := bufio.NewReader(in)
		put := func(l numbered) bool {
			select {
			case lines <- l:
				return true
			case <-ctx.Done():
				return false
			}
		}
		for n := 1; ; n++ {
			text, some, err := readLine(br, posthorn.DefaultLimits().BodyBytes+1024)
			if some && !put(numbered{n: n, text: text}) {
				return
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					put(numbered{err: fmt.Errorf("line %d: %w", n, err)})
				}
				return
			}
		}
	}()
	return lines
}

// readLine reads one line and keeps the first bytes of it, more than a message may have: the rest of a longer one is
// passed over, and the lines behind it are read.
func readLine(br *bufio.Reader, most int) (text string, some bool, err error) {
	var b []byte
	for {
		part, err := br.ReadSlice('\n')
		some = some || len(part) > 0
		b = append(b, part[:min(len(part), most-len(b))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), some, err
		}
	}
}
