package client

import (
	"time"

	"github.com/posthorn/posthorn"
)

// targetWait is how long an item waits for the message that it answers to be there again.
const targetWait = 24 * time.Hour

// offer shows what a cut put into the outbox.
func (s *session) offer(items []keyed) {
	for _, x := range items {
		s.c.outbox.put(x.key, x.item)
		if x.failed() {
			s.c.itemFailed(&x.item)
			continue
		}
		s.c.feeds.publish(Change{Kind: ChangeItem, Conv: x.Conv, Item: x.show()})
	}
	s.takeItems(false)
}

// rewritten shows the items whose message is there again, and sends them.
func (s *session) rewritten(items []keyed) {
	if len(items) > 0 {
		s.offer(items)
	}
}

// findTargets lets waiting items go whose message has become part of the log again, under its new number.
func (l *ledger) findTargets() error {
	for _, x := range l.waiting {
		for i := range l.applied {
			ev := &l.applied[i]
			if ev.Conv != x.Conv || ev.Sender != x.TargetSender || ev.Cmid != x.TargetCmid {
				continue
			}
			x.ReplyTo, x.Waiting, x.Epoch = ev.Seq, 0, l.id.Epoch
			if _, err := l.t.putItem(x.key, x.item); err != nil {
				return err
			}
			l.found = append(l.found, x)
			break
		}
	}
	return nil
}

// expire fails what has waited for a day, now and from time to time.
func (s *session) expire() {
	for _, x := range s.c.outbox.list((*item).waiting) {
		if x.overdue(time.Now()) {
			s.failItem(x.key, &x.item, errLostTarget())
		}
	}
	s.agenda.add(targetWait/24, s.expire)
}

func (it *item) overdue(now time.Time) bool {
	return it.waiting() && now.Sub(time.UnixMilli(it.Waiting)) > targetWait
}

func errLostTarget() error {
	return posthorn.Errorf(posthorn.CodeNotFound, "the message that this answers did not come back within a day")
}
