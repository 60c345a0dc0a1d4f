package client

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// The records of the store. Events are kept as the frames in which they came, so that what a later server adds to them is
// not lost; entries as frames too, and the rest is JSON of our own. Sequence numbers decode into int64, never through
// a float (B72).

// errRecord is wrapped by every failure to read back what the store holds.
var errRecord = errors.New("damaged record")

// identity says whose store this is and in which install and epoch it lives.
type identity struct {
	User    string `json:"user"`
	Device  string `json:"device"`
	Install int64  `json:"install"` // 0: none yet, the server assigns the next
	Resume  string `json:"resume,omitempty"`
	Epoch   int64  `json:"epoch"`            // of the last session
	Newest  int64  `json:"newest,omitempty"` // the newest epoch seen in any: what hello presents
}

// cursor is how far a conversation's log is held without a hole. The number means nothing without its epoch and install:
// the three are stored and compared as one value (B15).
type cursor struct {
	Epoch   int64 `json:"epoch"`
	Install int64 `json:"install"`
	Seq     int64 `json:"seq"`
	Start   int64 `json:"start,omitempty"` // what lies at or below it was never asked for
	Acked   int64 `json:"acked,omitempty"` // what the server confirmed last, for people; decides nothing

	// The last pair that the server confirmed, where an epoch change asked for one.
	SharedSeq int64  `json:"shared_seq,omitempty"`
	SharedMid string `json:"shared_mid,omitempty"`
}

// void tells that the cursor counts in another epoch or install than the session's.
func (c cursor) void(id identity) bool { return c.Epoch != id.Epoch || c.Install != id.Install }

// sentRecord remembers for a day what was sent, so that it can be offered again when the server's history is rewound.
type sentRecord struct {
	Key    uint64 `json:"key"` // its place in the outbox, to which it goes back
	Item   item   `json:"item"`
	Seq    int64  `json:"seq"`
	Mid    string `json:"mid"`
	At     int64  `json:"at"` // the database's time
	Epoch  int64  `json:"epoch"`
	Stored int64  `json:"stored"` // this device's time, by which it is forgotten
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain structs of strings and numbers always encode
	}
	return b
}

func decode(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	return nil
}

// decodeEvent reads an event record back: the frame as it came, or one built from a sent item or a page.
func decodeEvent(b []byte) (*wire.Event, error) {
	f, err := wire.DecodeServer(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	ev, ok := f.(*wire.Event)
	if !ok || !sound(ev.Ev.Seq) || ev.Ev.Conv == "" {
		return nil, fmt.Errorf("%w: not an event", errRecord)
	}
	return ev, nil
}

func decodeEntry(b []byte) (posthorn.Entry, error) {
	f, err := wire.DecodeServer(b)
	if err != nil {
		return posthorn.Entry{}, fmt.Errorf("%w: %w", errRecord, err)
	}
	c, ok := f.(*wire.Conv)
	if !ok {
		return posthorn.Entry{}, fmt.Errorf("%w: not an entry", errRecord)
	}
	return c.Entry, nil
}

// numKey orders keys as their numbers: seqs in a log, places in the outbox.
func numKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// keyNum is 0 for what is no such key, nil among them.
func keyNum(k []byte) uint64 {
	if len(k) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(k)
}

func seqKey(seq int64) []byte { return numKey(uint64(seq)) }
func keySeq(k []byte) int64   { return int64(keyNum(k)) }
