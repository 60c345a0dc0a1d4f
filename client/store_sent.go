package client

import (
	"time"
)

// What was sent is remembered for a day, and no more of it than sentRecords.
const (
	sentFor     = 24 * time.Hour
	sentRecords = 10_000
	sentTrim    = 64 // looked at in one transaction, so that none grows long
)

// keyedSent is a record with its place.
type keyedSent struct {
	key uint64
	sentRecord
}

// putSent remembers what was sent; key 0 takes the next place.
func (t storeTx) putSent(key uint64, r sentRecord) error {
	b := t.tx.Bucket(bSent)
	if key == 0 {
		var err error
		if key, err = b.NextSequence(); err != nil {
			return err
		}
	}
	if err := b.Put(numKey(key), encode(r)); err != nil {
		return err
	}
	return t.forgetSent()
}

func (t storeTx) dropSent(key uint64) error { return t.tx.Bucket(bSent).Delete(numKey(key)) }

// forgetSent drops the oldest records that are out of date or beyond the bound. A record that says a time to come is
// fresh: the clock was set back.
func (t storeTx) forgetSent() error {
	b := t.tx.Bucket(bSent)
	limit := time.Now().Add(-sentFor).UnixMilli()
	for range sentTrim {
		k, v := b.Cursor().First()
		if k == nil {
			return nil
		}
		var r sentRecord
		if err := decode(v, &r); err != nil {
			return err
		}
		first := keyNum(k)
		if r.Stored >= limit && b.Sequence()-first < sentRecords {
			return nil
		}
		if err := t.dropSent(first); err != nil {
			return err
		}
	}
	return nil
}

// sent gives the records of the last day that match, by conversation, oldest first.
func (t storeTx) sent(match func(*sentRecord) bool) (map[string][]keyedSent, error) {
	out := map[string][]keyedSent{}
	limit := time.Now().Add(-sentFor).UnixMilli()
	err := t.tx.Bucket(bSent).ForEach(func(k, v []byte) error {
		var r sentRecord
		if err := decode(v, &r); err != nil {
			return err
		}
		if r.Stored >= limit && match(&r) {
			out[r.Item.Conv] = append(out[r.Item.Conv], keyedSent{keyNum(k), r})
		}
		return nil
	})
	return out, err
}
