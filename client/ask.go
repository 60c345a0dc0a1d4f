package client

import (
	"fmt"
	"strconv"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// sendingsKept is how many sendings of one request are remembered, so that a late answer still counts.
const sendingsKept = 8

// request is a frame that waits for its reply, under one rid for each time that it was sent.
type request struct {
	frame   wire.Frame
	reply   func(wire.Frame, []byte) effect
	rids    []string
	timeout *task
}

// ask sends a request. reply gets what comes back, an error frame too, and must change nothing but by its effect. Where
// nothing comes in time the request is sent again, for as long as the connection lives; the answer to any of the sendings
// will do, or else a server slower than the time would never be heard.
func (s *session) ask(f wire.Frame, reply func(wire.Frame, []byte) effect) {
	s.askAgain(&request{frame: f, reply: reply})
}

func (s *session) askAgain(r *request) {
	rid := s.rid()
	if len(r.rids) == sendingsKept {
		delete(s.reqs, r.rids[0])
		r.rids = r.rids[1:]
	}
	r.rids = append(r.rids, rid)
	s.reqs[rid] = r
	r.timeout = s.agenda.add(s.c.cfg.RequestTimeout, func() { s.askAgain(r) })
	s.write(withRID(r.frame, rid))
}

func (s *session) rid() string {
	s.rids++
	return strconv.FormatInt(s.rids, 10)
}

// answered hands a reply to its request; the request is done with once the burst is stored.
func (s *session) answered(rid string, f wire.Frame, raw []byte) effect {
	r := s.reqs[rid]
	if r == nil {
		return effect{}
	}
	e := r.reply(f, raw)
	then := e.then
	e.then = func() {
		if s.reqs[rid] != r {
			return // answered by another of its sendings in this burst
		}
		for _, rid := range r.rids {
			delete(s.reqs, rid)
		}
		s.agenda.drop(r.timeout)
		if then != nil {
			then()
		}
	}
	return e
}

// refused deals with an error that is not about an outbox item: retry comes back after a while, gone where the
// conversation is none of ours.
func (s *session) refused(e *wire.Error, n int, retry, resync, gone func()) {
	switch e.Code.Class() {
	case posthorn.SessionTerminal:
		s.fail(refusal(e))
	case posthorn.ItemTerminal:
		gone()
	case posthorn.Resync:
		resync()
	default:
		s.agenda.add(s.retryAfter(e, n), retry)
	}
}

// retryAfter is when to come back after the nth refusal for the moment.
func (s *session) retryAfter(e *wire.Error, n int) time.Duration {
	wait := s.c.cfg.Backoff.wait(n)
	if e.RetryMS > 0 {
		return time.Duration(e.RetryMS)*time.Millisecond + wait/4
	}
	return wait
}

func (s *session) unexpected(f wire.Frame) {
	s.fail(fmt.Errorf("client: a request was answered by %s", f.Type()))
}
