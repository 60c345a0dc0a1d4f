package client

import (
	"bytes"

	"go.etcd.io/bbolt"

	"github.com/posthorn/posthorn"
)

// storeTx reads and writes the records inside one transaction. Nothing that it returns points into the file.
type storeTx struct{ tx *bbolt.Tx }

func (t storeTx) identity() (identity, error) {
	var id identity
	b := t.tx.Bucket(bMeta).Get(kIdentity)
	if b == nil {
		return id, nil
	}
	return id, decode(b, &id)
}

func (t storeTx) putIdentity(id identity) error { return t.tx.Bucket(bMeta).Put(kIdentity, encode(id)) }

// cursor gives a conversation's cursor; known is false where the conversation is new to this device.
func (t storeTx) cursor(conv string) (c cursor, known bool, err error) {
	b := t.tx.Bucket(bCursors).Get([]byte(conv))
	if b == nil {
		return c, false, nil
	}
	return c, true, decode(b, &c)
}

func (t storeTx) putCursor(conv string, c cursor) error {
	return t.tx.Bucket(bCursors).Put([]byte(conv), encode(c))
}

func (t storeTx) cursors() (map[string]cursor, error) {
	all := map[string]cursor{}
	err := t.tx.Bucket(bCursors).ForEach(func(k, v []byte) error {
		var c cursor
		if err := decode(v, &c); err != nil {
			return err
		}
		all[string(k)] = c
		return nil
	})
	return all, err
}

// putEntry keeps a conversation's entry; false where it is the one that is kept already.
func (t storeTx) putEntry(conv string, frame []byte) (changed bool, err error) {
	b := t.tx.Bucket(bConvs)
	if bytes.Equal(b.Get([]byte(conv)), frame) {
		return false, nil
	}
	return true, b.Put([]byte(conv), frame)
}

func (t storeTx) entries() ([]posthorn.Entry, error) {
	var all []posthorn.Entry
	err := t.tx.Bucket(bConvs).ForEach(func(_, v []byte) error {
		e, err := decodeEntry(v)
		if err == nil {
			all = append(all, e)
		}
		return err
	})
	return all, err
}

// forgetConv drops what is held of a conversation that this history does not know.
func (t storeTx) forgetConv(conv string) error {
	for _, b := range [][]byte{bCursors, bConvs} {
		if err := t.tx.Bucket(b).Delete([]byte(conv)); err != nil {
			return err
		}
	}
	return t.dropLog(conv)
}

// forgetInstall starts anew: a new install holds nothing yet. The outbox and what was sent stay.
func (t storeTx) forgetInstall() error {
	items, err := t.items()
	if err != nil {
		return err
	}
	for _, x := range items { // while the log can still tell whom they answer
		if x.ReplyTo == 0 || x.TargetCmid != "" {
			continue
		}
		if err := t.nameTarget(&x.item); err != nil {
			return err
		}
		if _, err := t.putItem(x.key, x.item); err != nil {
			return err
		}
	}
	for _, b := range [][]byte{bCursors, bLog} {
		if err := t.tx.DeleteBucket(b); err != nil {
			return err
		}
		if _, err := t.tx.CreateBucket(b); err != nil {
			return err
		}
	}
	return nil
}

// putItem writes an outbox item; key 0 takes the next number.
func (t storeTx) putItem(key uint64, it item) (uint64, error) {
	b := t.tx.Bucket(bOutbox)
	if key == 0 {
		var err error
		if key, err = b.NextSequence(); err != nil {
			return 0, err
		}
	}
	return key, b.Put(numKey(key), encode(it))
}

// takeItem removes an item; false where it is gone already.
func (t storeTx) takeItem(key uint64) (bool, error) {
	b, k := t.tx.Bucket(bOutbox), numKey(key)
	if b.Get(k) == nil {
		return false, nil
	}
	return true, b.Delete(k)
}

// items gives the outbox in its order.
func (t storeTx) items() ([]keyed, error) {
	var all []keyed
	err := t.tx.Bucket(bOutbox).ForEach(func(k, v []byte) error {
		x := keyed{key: keyNum(k)}
		err := decode(v, &x.item)
		all = append(all, x)
		return err
	})
	return all, err
}

// keyed is an outbox item with its number.
type keyed struct {
	key uint64
	item
}
