package client

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// storeFormat is raised when an older SDK could no longer read the file.
const storeFormat = 1

// What Open says about a store that it cannot use.
var (
	ErrStoreLocked  = errors.New("client: the store is open in another process") // B73: one process per device
	ErrStoreCorrupt = errors.New("client: the store is damaged")
	ErrStoreNewer   = errors.New("client: the store was written by a newer version")
	ErrStoreForeign = errors.New("client: the file is not a client's store")
)

// The buckets.
var (
	bMeta    = []byte("meta")    // format, identity
	bCursors = []byte("cursors") // conversation → cursor
	bConvs   = []byte("convs")   // conversation → entry, as a conv frame
	bLog     = []byte("log")     // conversation → bucket: seq → event frame; above the cursor lies what is past a gap
	bOutbox  = []byte("outbox")  // number → item; lower numbers go first
	bSent    = []byte("sent")    // time stored, cmid → sentRecord

	kFormat   = []byte("format")
	kIdentity = []byte("identity")
)

// store is the device's durable state: one bbolt file, fsynced at every commit. Its writer goroutine (store_commit.go)
// groups what waits into one transaction.
type store struct {
	db   *bbolt.DB
	work chan *job     // unbuffered: a job that was taken is answered
	quit chan struct{} // closed by close
	done chan struct{} // closed by the writer
}

// openStore opens or makes the file. noSync is for tests that are not about durability.
func openStore(path string, noSync bool) (_ *store, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("client: store folder: %w", err)
	}
	s := &store{work: make(chan *job), quit: make(chan struct{}), done: make(chan struct{})}
	err = guard(func() error {
		s.db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoSync: noSync, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			return err
		}
		return s.prepare(path)
	})
	if err == nil && !noSync {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		if s.db != nil {
			_ = s.db.Close()
		}
		return nil, openError(path, err)
	}
	go s.write()
	return s, nil
}

// prepare makes the buckets of a new file and looks over those of an old one, all but the log, which may be long.
func (s *store) prepare(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() && info.Size() > 0 {
			return fmt.Errorf("%w: the file is shorter than its pages", ErrStoreCorrupt)
		}
		if err := s.checkFormat(tx); err != nil {
			return err
		}
		for _, name := range [][]byte{bCursors, bConvs, bLog, bOutbox, bSent} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return look(tx)
	})
}

func (s *store) checkFormat(tx *bbolt.Tx) error {
	meta := tx.Bucket(bMeta)
	if meta == nil {
		if k, _ := tx.Cursor().First(); k != nil {
			return ErrStoreForeign
		}
		meta, err := tx.CreateBucket(bMeta)
		if err != nil {
			return err
		}
		return meta.Put(kFormat, encode(storeFormat))
	}
	var format int
	if err := decode(meta.Get(kFormat), &format); err != nil {
		return err
	}
	if format > storeFormat {
		return fmt.Errorf("%w (format %d, known %d)", ErrStoreNewer, format, storeFormat)
	}
	return nil
}

// look reads every record that a session needs at its start, so that damage is told now and not in the middle.
func look(tx *bbolt.Tx) error {
	t := storeTx{tx}
	if _, err := t.identity(); err != nil {
		return err
	}
	if _, err := t.cursors(); err != nil {
		return err
	}
	_, err := t.items()
	return err
}

// guard turns what bbolt does on a damaged file, panics and faults in the mapped memory, into an error.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrStoreCorrupt, p)
		}
	}()
	return fn()
}

func openError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		err = ErrStoreLocked
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch),
		errors.Is(err, errRecord):
		err = fmt.Errorf("%w: %w", ErrStoreCorrupt, err)
	}
	return fmt.Errorf("%w: %s", err, path)
}

// syncDir makes the new file's name durable; bbolt syncs the file only.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
