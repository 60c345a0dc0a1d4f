package gateway

import (
	"github.com/coder/websocket"
	"github.com/posthorn/posthorn"
)

// ending is how a connection ends.
type ending struct {
	code      posthorn.Code        // of the bye frame; "": none
	reconnect int64                // ms, told in it
	status    websocket.StatusCode // of the close frame; 0: the peer is gone, nothing is written
	reason    string
	keep      keep // what of the queue is written before
}

type keep int

const (
	keepNothing keep = iota
	keepReplies
	keepAll
)

func bye(code posthorn.Code) ending {
	e := closing(websocket.StatusCode(code.ByeStatus()), string(code)).after(keepReplies)
	e.code = code
	if e.status == 0 {
		e.status = websocket.StatusInternalError // not a code for bye; the frame tells it all the same
	}
	return e
}

func closing(status websocket.StatusCode, reason string) ending {
	return ending{status: status, reason: reason}
}

// after says what of the queue is written before.
func (e ending) after(k keep) ending {
	e.keep = k
	return e
}

// end sets the ending; the first one counts.
func (q *queue) end(e ending) bool {
	q.mu.Lock()
	first := q.ending == nil
	if first {
		q.ending = &e
	}
	q.mu.Unlock()
	q.ring()
	return first
}

// part ends the connection once no writing request is unanswered; true: none is now.
func (q *queue) part(e ending) bool {
	q.mu.Lock()
	q.parting = &e
	now := q.writes == 0
	q.mu.Unlock()
	q.ring()
	return now
}

// close frees everything; nothing is taken any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.items, q.hints, q.acked = true, nil, nil, nil
}
