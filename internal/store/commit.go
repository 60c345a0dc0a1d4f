package store

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/fault"
)

// sendResult is the row that the function send_batch answers with.
type sendResult struct {
	pid    uint32
	tx     *string
	epoch  int64
	codes  []string
	seqs   []int64
	mids   []string
	ats    []time.Time
	msgNos []int64
}

var errLocked = errors.New("a conversation is locked by somebody else")

// sendBatch gives every op its outcome, save those whose conversation stayed locked: they are returned, in order. skip
// tells whether a second attempt that leaves out locked conversations is made (the batcher) or not (a lane, which has
// nothing else to do).
func (s *Store) sendBatch(w *writer, ops []*posthorn.Op, wait time.Duration, skip bool) (locked []*posthorn.Op) {
	if _, err := fault.Hit(fault.SendBeforeInsert); err != nil {
		finish(ops, posthorn.Outcome{Err: unavailable("injected fault", err)})
		return nil
	}
	if ops = s.ofThisEpoch(ops); len(ops) == 0 {
		return nil
	}
	leaders, followers := fold(ops)
	err := s.sendRows(w, leaders, followers, wait, false, &locked)
	if errors.Is(err, errLocked) && skip {
		err = s.sendRows(w, leaders, followers, wait, true, &locked)
	}
	if errors.Is(err, errLocked) {
		return ops
	}
	if len(locked) > 0 {
		locked = inOrder(ops, locked)
	}
	return locked
}

// ofThisEpoch turns away what was asked in sessions of another one. The guard holds the transaction to the same epoch.
func (s *Store) ofThisEpoch(ops []*posthorn.Op) []*posthorn.Op {
	for i, op := range ops {
		if s.current(op.Epoch) == nil {
			continue
		}
		kept := append([]*posthorn.Op(nil), ops[:i]...)
		for _, op := range ops[i:] {
			if err := s.current(op.Epoch); err != nil {
				op.Done(posthorn.Outcome{Err: err})
			} else {
				kept = append(kept, op)
			}
		}
		return kept
	}
	return ops
}

// fold leaves one op per (conv, sender, cmid): the others wait for what becomes of it.
func fold(ops []*posthorn.Op) (leaders []*posthorn.Op, followers map[*posthorn.Op][]*posthorn.Op) {
	type key struct{ conv, sender, cmid string }
	seen := make(map[key]*posthorn.Op, len(ops))
	leaders = make([]*posthorn.Op, 0, len(ops))
	for _, op := range ops {
		k := key{op.Conv, op.Sender, op.Cmid}
		if first := seen[k]; first != nil {
			if followers == nil {
				followers = map[*posthorn.Op][]*posthorn.Op{}
			}
			followers[first] = append(followers[first], op)
			continue
		}
		seen[k] = op
		leaders = append(leaders, op)
	}
	return leaders, followers
}

func sameContent(a, b *posthorn.Op) bool {
	body := a.Body == b.Body || (a.Body != nil && b.Body != nil && *a.Body == *b.Body)
	return body && a.ReplyTo == b.ReplyTo && (a.Data == nil) == (b.Data == nil) && bytes.Equal(a.Data, b.Data)
}

// sendRows runs one transaction and hands out what became of each op. On a data error the batch is halved, so that a
// member that the database refuses does not fail its neighbours.
func (s *Store) sendRows(w *writer, ops []*posthorn.Op, followers map[*posthorn.Op][]*posthorn.Op, wait time.Duration, skip bool, locked *[]*posthorn.Op) error {
	batch := s.tail.begin()
	var res sendResult
	var err error
	for range 3 {
		err = w.tx(fault.SendBeforeCommit, s.sql(sendBatchSQL), s.sendArgs(batch, ops, wait, skip), func(r pgx.Row) error {
			return r.Scan(&res.pid, &res.tx, &res.epoch, &res.codes, &res.seqs, &res.mids, &res.ats, &res.msgNos)
		})
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || !retryable(pg) || pg.Code == lockNotAvailable {
			break
		}
	}
	if err != nil {
		s.tail.end(batch, errors.Is(err, posthorn.ErrUnknown))
	}
	var pg *pgconn.PgError
	switch {
	case err == nil:
		s.committed(w, batch, res.pid, res.tx, res.epoch)
		s.settleSend(batch, ops, followers, &res, locked)
		return nil
	case errors.Is(err, posthorn.ErrUnknown):
		s.stats.unknown.Add(int64(len(ops)))
		s.log.Warn("the outcome of a batch is unknown; nothing is answered", "sends", len(ops), "error", err)
		answer(ops, followers, posthorn.Outcome{Err: err})
		return nil
	case errors.As(err, &pg) && pg.Code == lockNotAvailable:
		return errLocked
	case errors.As(err, &pg) && dataError(pg) && len(ops) > 1:
		for _, half := range [][]*posthorn.Op{ops[:len(ops)/2], ops[len(ops)/2:]} {
			if len(*locked) > 0 && !skip { // a lane: what comes later must not overtake
				*locked = append(*locked, withFollowers(half, followers)...)
			} else if err := s.sendRows(w, half, followers, wait, skip, locked); err != nil {
				*locked = append(*locked, withFollowers(half, followers)...)
			}
		}
		return nil
	}
	e := s.readError(err)
	if posthorn.AsError(e).Code == posthorn.CodeInternal {
		s.log.Error("a batch failed", "sends", len(ops), "error", err)
	}
	answer(ops, followers, posthorn.Outcome{Err: e})
	return nil
}

// sendArgs turns ops into the function's arrays.
func (s *Store) sendArgs(batch int64, ops []*posthorn.Op, wait time.Duration, skip bool) []any {
	n := len(ops)
	convs, senders, cmids := make([]string, n), make([]string, n), make([]string, n)
	devices, replies := make([]*int64, n), make([]*int64, n)
	servers := make([]bool, n)
	bodies, datas := make([]*string, n), make([]*string, n)
	for i, op := range ops {
		convs[i], senders[i], cmids[i], servers[i], bodies[i] = op.Conv, op.Sender, op.Cmid, op.AsServer, op.Body
		devices[i], replies[i] = absent0(op.DeviceID), absent0(op.ReplyTo)
		if op.Data != nil {
			d := string(op.Data)
			datas[i] = &d
		}
	}
	return []any{s.cfg.Gateway, batch, s.channel(), skip, lockText(wait), convs, senders, devices, servers, cmids, bodies, datas, replies}
}

func absent0(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func lockText(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// settleSend runs after COMMIT: fresh events go to the deliverer, which answers their senders in seq order; everything
// else is answered here.
func (s *Store) settleSend(batch int64, ops []*posthorn.Op, followers map[*posthorn.Op][]*posthorn.Op, res *sendResult, locked *[]*posthorn.Op) {
	if drop, err := fault.Hit(fault.APIAfterSendCommit); drop || err != nil {
		s.tail.end(batch, true)
		answer(ops, followers, posthorn.Outcome{Err: posthorn.ErrUnknown})
		return
	}
	fresh := make([]posthorn.Committed, 0, len(ops))
	for i, op := range ops {
		out := posthorn.Outcome{Conv: op.Conv, Seq: res.seqs[i], Mid: res.mids[i], Epoch: res.epoch, At: res.ats[i]}
		switch code := res.codes[i]; code {
		case "":
			fresh = append(fresh, posthorn.Committed{Event: eventOf(op, res, i), Prev: res.seqs[i] - 1, Op: op, Epoch: res.epoch})
		case "DUP":
			out.Dup = true
			op.Done(out)
		case "LOCKED":
			*locked = append(append(*locked, op), followers[op]...)
			continue
		default:
			out = posthorn.Outcome{Err: refusal(posthorn.Code(code), "")}
			op.Done(out)
		}
		answerFollowers(op, followers[op], out)
	}
	s.stats.sent.Add(int64(len(fresh)))
	s.stats.batches.Add(1)
	s.out <- delivery{batch, fresh}
}

// committed notes what a transaction of a writer has left behind.
func (s *Store) committed(w *writer, batch int64, pid uint32, tx *string, epoch int64) {
	s.tail.own(w, pid)
	if tx != nil {
		s.witness.acknowledged(epoch, batchSeen{Lane: w.lane, Origin: s.cfg.Gateway, Tx: *tx, Batch: batch})
	}
}

func eventOf(op *posthorn.Op, res *sendResult, i int) posthorn.Event {
	return posthorn.Event{Conv: op.Conv, Seq: res.seqs[i], Kind: posthorn.KindMsg, Mid: res.mids[i], Sender: op.Sender, ViaServer: op.DeviceID == 0,
		Cmid: op.Cmid, Body: op.Body, Data: op.Data, ReplyTo: op.ReplyTo, At: res.ats[i], MsgNo: res.msgNos[i]}
}

// answerFollowers tells ops with the same key what became of the first one.
func answerFollowers(first *posthorn.Op, same []*posthorn.Op, out posthorn.Outcome) {
	for _, op := range same {
		switch {
		case out.Err != nil:
			op.Done(out)
		case sameContent(first, op):
			again := out
			again.Dup = true
			op.Done(again)
		default:
			op.Done(posthorn.Outcome{Err: refusal(posthorn.CodeCmidReused, "")})
		}
	}
}

func answer(ops []*posthorn.Op, followers map[*posthorn.Op][]*posthorn.Op, out posthorn.Outcome) {
	for _, op := range ops {
		op.Done(out)
		for _, f := range followers[op] {
			f.Done(out)
		}
	}
}

func withFollowers(ops []*posthorn.Op, followers map[*posthorn.Op][]*posthorn.Op) (all []*posthorn.Op) {
	for _, op := range ops {
		all = append(append(all, op), followers[op]...)
	}
	return all
}

func finish(ops []*posthorn.Op, out posthorn.Outcome) { answer(ops, nil, out) }

// inOrder gives the ops of the set in the order of the batch.
func inOrder(ops, set []*posthorn.Op) []*posthorn.Op {
	in := make(map[*posthorn.Op]bool, len(set))
	for _, op := range set {
		in[op] = true
	}
	out := make([]*posthorn.Op, 0, len(set))
	for _, op := range ops {
		if in[op] {
			out = append(out, op)
		}
	}
	return out
}

// refusal puts a sentence to a code that the database decided on.
func refusal(code posthorn.Code, why string) *posthorn.Error {
	if why == "" {
		why = map[posthorn.Code]string{
			posthorn.CodeNotMember:  "no such conversation, or not a member of it",
			posthorn.CodeForbidden:  "the role does not allow this here",
			posthorn.CodeCmidReused: "this cmid was used for another request",
			posthorn.CodeCmidTooOld: "this cmid is older than the keys that are kept",
			posthorn.CodeNotFound:   "reply_to names no event of this conversation",
			posthorn.CodeTooLarge:   "the conversation is full",
		}[code]
	}
	return posthorn.Errorf(code, "%s", why)
}
