package client

import (
	"bytes"

	"go.etcd.io/bbolt"

	"github.com/posthorn/posthorn"
)

// logChunk bounds how many events one read transaction hands out.
const logChunk = 256

// log gives a conversation's bucket, or nil where there is none and make is false.
func (t storeTx) log(conv string, make bool) (*bbolt.Bucket, error) {
	logs := t.tx.Bucket(bLog)
	if b := logs.Bucket([]byte(conv)); b != nil || !make {
		return b, nil
	}
	return logs.CreateBucket([]byte(conv))
}

func (t storeTx) dropLog(conv string) error {
	if t.tx.Bucket(bLog).Bucket([]byte(conv)) == nil {
		return nil
	}
	return t.tx.Bucket(bLog).DeleteBucket([]byte(conv))
}

// dropUnbegun removes what came of conversations before their first page did. Without a cursor nothing would tell that it
// is from an epoch before.
func (t storeTx) dropUnbegun() error {
	var convs []string
	err := t.tx.Bucket(bLog).ForEachBucket(func(k []byte) error {
		if t.tx.Bucket(bCursors).Get(k) == nil {
			convs = append(convs, string(k))
		}
		return nil
	})
	for _, conv := range convs {
		if err == nil {
			err = t.dropLog(conv)
		}
	}
	return err
}

// dropAbove removes the log above seq, what is past a gap included.
func (t storeTx) dropAbove(conv string, seq int64) error {
	b, err := t.log(conv, false)
	if b == nil || err != nil {
		return err
	}
	return deleteRange(b, seq+1, posthorn.MaxSeq)
}

// deleteRange removes the keys from..to of a log. Deleting while a bbolt cursor walks skips keys, so it seeks anew.
func deleteRange(b *bbolt.Bucket, from, to int64) error {
	for {
		k, _ := b.Cursor().Seek(seqKey(from))
		if k == nil || keySeq(k) > to {
			return nil
		}
		if err := b.Delete(bytes.Clone(k)); err != nil {
			return err
		}
	}
}

// events reads the contiguous part of a log above after, at most logChunk events.
func (t storeTx) events(conv string, after int64) ([]posthorn.Event, error) {
	cur, known, err := t.cursor(conv)
	if err != nil || !known {
		return nil, err
	}
	b, err := t.log(conv, false)
	if b == nil || err != nil {
		return nil, err
	}
	var all []posthorn.Event
	c := b.Cursor()
	for k, v := c.Seek(seqKey(max(after, cur.Start) + 1)); k != nil && keySeq(k) <= cur.Seq && len(all) < logChunk; k, v = c.Next() {
		ev, err := decodeEvent(v)
		if err != nil {
			return nil, err
		}
		all = append(all, ev.Ev)
	}
	return all, nil
}

// event reads one event of the log, whether past a gap or not; nil where it is not held.
func (t storeTx) event(conv string, seq int64) (*posthorn.Event, error) {
	b, err := t.log(conv, false)
	if b == nil || err != nil {
		return nil, err
	}
	v := b.Get(seqKey(seq))
	if v == nil {
		return nil, nil
	}
	ev, err := decodeEvent(v)
	if err != nil {
		return nil, err
	}
	return &ev.Ev, nil
}

// pairs looks up the events at or after each of the wanted numbers, below the bound: what confirm asks with.
func (t storeTx) pairs(conv string, wanted []int64, bound int64) ([]posthorn.Pair, error) {
	b, err := t.log(conv, false)
	if b == nil || err != nil {
		return nil, err
	}
	var ps []posthorn.Pair
	c := b.Cursor()
	for _, seq := range wanted { // rising
		k, v := c.Seek(seqKey(seq))
		if k == nil || keySeq(k) >= bound {
			break
		}
		if len(ps) > 0 && ps[len(ps)-1].Seq >= keySeq(k) {
			continue
		}
		ev, err := decodeEvent(v)
		if err != nil {
			return nil, err
		}
		ps = append(ps, posthorn.Pair{Seq: ev.Ev.Seq, Mid: ev.Ev.Mid})
	}
	return ps, nil
}

// eachEvent goes through everything that the log holds above seq.
func (t storeTx) eachEvent(conv string, above int64, see func(*posthorn.Event)) error {
	b, err := t.log(conv, false)
	if b == nil || err != nil {
		return err
	}
	c := b.Cursor()
	for k, v := c.Seek(seqKey(above + 1)); k != nil; k, v = c.Next() {
		ev, err := decodeEvent(v)
		if err != nil {
			return err
		}
		see(&ev.Ev)
	}
	return nil
}
