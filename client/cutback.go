package client

import (
	"time"

	"github.com/posthorn/posthorn"
)

// cutBack is one conversation's change of history, in one transaction: the log above the common past goes, and what this
// device had sent there within the last day goes back into the outbox, in its old place and with its old cmid, so that
// what the rewind lost comes back and what it did not lose is a duplicate.
type cutBack struct {
	id     identity
	conv   string
	shared posthorn.Pair
	head   int64 // the visible head, where the conversation is listed
	listed bool
	gone   bool // this history does not know the conversation
	sent   bool // something may have been sent there within the last day

	rec     cursor
	known   bool
	offered []keyed // items that are in the outbox again, or wait, or failed, because of it
}

func (k *cutBack) run(t storeTx) (err error) {
	k.offered = nil
	if k.rec, k.known, err = t.cursor(k.conv); err != nil {
		return err
	}
	if k.sent {
		if err := k.offerSent(t); err != nil {
			return err
		}
	}
	if err := k.holdReplies(t); err != nil {
		return err
	}
	if k.gone {
		k.rec, k.known = cursor{}, false
		return t.forgetConv(k.conv)
	}
	if !k.known {
		return nil
	}
	start := k.rec.Start
	if k.listed {
		start = min(start, k.head)
	}
	k.rec = cursor{Epoch: k.id.Epoch, Install: k.id.Install, Seq: max(k.shared.Seq, start), Start: start,
		SharedSeq: k.shared.Seq, SharedMid: k.shared.Mid}
	if err := t.dropAbove(k.conv, k.rec.Seq); err != nil {
		return err
	}
	return t.putCursor(k.conv, k.rec)
}

// recalled names the messages above the common past that are known to be recalled: nobody wants them back.
func (k *cutBack) recalled(t storeTx) (map[int64]bool, error) {
	out := map[int64]bool{}
	return out, t.eachEvent(k.conv, k.shared.Seq, func(ev *posthorn.Event) {
		if ev.Recalled {
			out[ev.Seq] = true
		}
		if ev.Kind == posthorn.KindRecall {
			out[ev.Target] = true
		}
	})
}

// offerSent moves what was sent above the common past back into the outbox. What lies below it is safe, and is noted as
// sent in this epoch.
func (k *cutBack) offerSent(t storeTx) error {
	byConv, err := t.sent(func(r *sentRecord) bool { return r.Item.Conv == k.conv })
	if err != nil {
		return err
	}
	recalled, err := k.recalled(t)
	if err != nil {
		return err
	}
	for _, r := range byConv[k.conv] {
		if r.Seq <= k.shared.Seq {
			r.Epoch = k.id.Epoch
			if err := t.putSent(r.key, r.sentRecord); err != nil {
				return err
			}
			continue
		}
		if err := t.dropSent(r.key); err != nil {
			return err
		}
		if recalled[r.Seq] {
			continue
		}
		it := r.Item
		it.Again = true
		if it.Epoch == 0 {
			it.Epoch = r.Epoch
		}
		if _, err := t.putItem(r.Key, it); err != nil {
			return err
		}
		k.offered = append(k.offered, keyed{r.Key, it})
	}
	return nil
}

// holdReplies makes items wait that answer a message above the common past, whether they are offered again or were never
// sent. One whose message nobody can name any more fails.
func (k *cutBack) holdReplies(t storeTx) error {
	all, err := t.items()
	if err != nil {
		return err
	}
	at := map[uint64]int{}
	for i, x := range k.offered {
		at[x.key] = i
	}
	for _, x := range all {
		if x.Conv != k.conv || x.ReplyTo == 0 || x.failed() || x.waiting() {
			continue
		}
		if x.ReplyTo <= k.shared.Seq { // is the same message in this epoch
			if x.Epoch != k.id.Epoch {
				x.Epoch = k.id.Epoch
				if err := k.put(t, x, at); err != nil {
					return err
				}
			}
			continue
		}
		if err := t.nameTarget(&x.item); err != nil {
			return err
		}
		if x.TargetCmid != "" {
			x.Waiting = time.Now().UnixMilli()
		} else {
			x.fail(posthorn.Errorf(posthorn.CodeNotFound, "the message that this answers was lost with the server's history"))
		}
		if err := k.put(t, x, at); err != nil {
			return err
		}
	}
	return nil
}

// put stores an item that has changed; at says which are among the offered already.
func (k *cutBack) put(t storeTx, x keyed, at map[uint64]int) error {
	if _, err := t.putItem(x.key, x.item); err != nil {
		return err
	}
	if i, ok := at[x.key]; ok {
		k.offered[i] = x
	} else {
		k.offered = append(k.offered, x)
	}
	return nil
}
