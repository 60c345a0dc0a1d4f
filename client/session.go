package client

import (
	"context"
	"errors"
	"time"

	"github.com/posthorn/posthorn/wire"
)

// Bounds of what a session has under way. Together they stay below the server's bound on requests in flight.
const (
	flightItems    = 32
	flightSyncs    = 4
	flightConfirms = 4
	appCalls       = 8
	burstFrames    = 256
	burstBytes     = 1 << 20
)

// session is one connection between its welcome and its end. Everything in it belongs to the goroutine of Client.run.
type session struct {
	c      *Client
	conn   *Conn
	w      *wire.Welcome
	id     identity
	agenda agenda
	reqs   map[string]*request
	rids   int64
	err    error // why the session ends; nil while it goes on

	convs   map[string]*conv
	acks    []*conv          // to be confirmed after this burst
	acked   map[string]int64 // told by the server, not yet written down
	syncQ   []*conv
	healQ   []*conv
	syncing int
	healing int

	lanes  map[string]*lane
	ready  []*lane
	flying int

	heard    time.Time
	pinged   time.Time // zero: no ping is unanswered
	beaten   time.Time
	compared time.Time // when a refusal last had all heads compared
}

// conv is what a session knows of a conversation. rec is what is on disk.
type conv struct {
	name  string
	known bool // has a cursor
	void  bool // its cursor is from another epoch: confirm comes before everything else
	sent  bool // something was sent to it in another epoch, within a day
	gap   bool // something is held past a hole
	rec   cursor
	head  int64 // the visible head as last told; what to reach, never where the cursor is

	events   int   // became part of the log since the last ack
	ackDue   *task // the delayed ack
	ackAgain bool  // after a hint: ack even where nothing new came

	listed  bool // stands in a queue
	wanted  bool // a sync is to be made
	running bool // a sync is under way
	again   bool // another one after it
	tries   int  // syncs in a row that brought nothing
	later   *task

	probe *probe // under way while the common past is looked for
}

// effect is what a frame does: store runs in the burst's transaction, perhaps twice, then runs after its commit. Either
// may be nil. events tells that store holds events of a log.
type effect struct {
	store  func(*ledger) error
	then   func()
	events bool
}

func (c *Client) newSession(conn *Conn, w *wire.Welcome) (*session, error) {
	s := &session{c: c, conn: conn, w: w, reqs: map[string]*request{}, convs: map[string]*conv{}, acked: map[string]int64{},
		lanes: map[string]*lane{}, heard: time.Now(), beaten: time.Now()}
	err := c.store.view(func(t storeTx) (err error) {
		if s.id, err = t.identity(); err != nil {
			return err
		}
		cursors, err := t.cursors()
		for name, rec := range cursors {
			s.convs[name] = &conv{name: name, known: true, void: rec.void(s.id), rec: rec}
		}
		if err != nil {
			return err
		}
		// What was sent in another epoch is looked at even where the conversation's log is gone.
		old, err := t.sent(func(r *sentRecord) bool { return r.Epoch != s.id.Epoch })
		for name := range old {
			c := s.conv(name)
			c.void, c.sent = true, true
		}
		if err != nil {
			return err
		}
		// So is an answer to a message of another epoch, though nothing else of the conversation may be left.
		items, err := t.items()
		for i := range items {
			if it := &items[i].item; it.dated(s.id.Epoch) {
				c := s.conv(it.Conv)
				c.void, c.sent = true, true
			}
		}
		return err
	})
	return s, err
}

// conv gives the conversation's place in the session.
func (s *session) conv(name string) *conv {
	c := s.convs[name]
	if c == nil {
		c = &conv{name: name}
		s.convs[name] = c
	}
	return c
}

// run holds the session until it ends; the error tells why and is never nil.
func (s *session) run(ctx context.Context) error {
	s.list("")
	s.takeItems(true)
	s.beat()
	s.expire()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for s.err == nil {
		s.pump()
		timer.Reset(s.agenda.next())
		select {
		case in, ok := <-s.conn.Frames():
			if !ok {
				s.fail(s.lost())
				break
			}
			s.burst(in)
		case <-s.c.woken:
			s.takeItems(false)
		case <-timer.C:
			s.agenda.due()
		case <-ctx.Done():
			s.ackAll()
			return context.Cause(ctx)
		}
	}
	return s.err
}

// pump sends what may be sent now.
func (s *session) pump() {
	s.pumpAcks()
	s.pumpHeals()
	s.pumpSyncs()
	s.pumpItems()
}

func (s *session) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *session) lost() error {
	if err := s.conn.Err(); err != nil {
		return err
	}
	return errors.New("client: the connection ended")
}

// write sends a frame that needs no reply. A frame that cannot be written ends the session.
func (s *session) write(f wire.Frame) {
	if s.err != nil {
		return
	}
	if err := s.conn.Write(f); err != nil {
		s.fail(err)
	}
}
