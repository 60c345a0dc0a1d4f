package wire

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/posthorn/posthorn"
)

// What Append writes, the decoder of the other side reads back as the same frame, for every frame of each direction.

func TestRequestsSurviveTheWire(t *testing.T) {
	lim := posthorn.DefaultLimits()
	for name, gen := range requests() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f := gen.Draw(t, "frame")
				got, err := Decode(Append(nil, f), lim)
				if err != nil || !reflect.DeepEqual(f, got) {
					t.Fatalf("sent %+v\nas %s\ngot %+v, %v", f, Append(nil, f), got, err)
				}
			})
		})
	}
}

func TestAnswersSurviveTheWire(t *testing.T) {
	for name, gen := range answers() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f := gen.Draw(t, "frame")
				got, err := DecodeServer(Append(nil, f))
				if err != nil || !reflect.DeepEqual(f, got) {
					t.Fatalf("sent %+v\nas %s\ngot %+v, %v", f, Append(nil, f), got, err)
				}
			})
		})
	}
}

// TestGeneratorsCoverEveryFrame keeps the two tests above complete.
func TestGeneratorsCoverEveryFrame(t *testing.T) {
	reqs, anss := requests(), answers()
	for _, f := range allFrames() {
		if reqs[f.Type()] == nil && anss[f.Type()] == nil {
			t.Errorf("no generator for %s", f.Type())
		}
	}
}

func frame(draw func(t *rapid.T) Frame) *rapid.Generator[Frame] { return rapid.Custom(draw) }

func requests() map[string]*rapid.Generator[Frame] {
	rid, conv, cmid := or(id(64)), id(128), id(64)
	limit := rapid.IntRange(0, 500)
	change := func(typ string, least int) *rapid.Generator[Frame] {
		return frame(func(t *rapid.T) Frame {
			f := &Change{T: typ, RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Cmid: cmid.Draw(t, "cmid")}
			if least > 0 {
				f.Users = users(least).Draw(t, "users")
			}
			return f
		})
	}
	return map[string]*rapid.Generator[Frame]{
		"hello": frame(func(t *rapid.T) Frame {
			return &Hello{RID: rid.Draw(t, "rid"), Token: id(300).Draw(t, "token"), Device: id(128).Draw(t, "device"), Install: maybe(seq()).Draw(t, "install"),
				Resume: words(64).Draw(t, "resume"), Epoch: or(seq()).Draw(t, "epoch")}
		}),
		"confirm": frame(func(t *rapid.T) Frame {
			pair := rapid.Custom(func(t *rapid.T) posthorn.Pair {
				return posthorn.Pair{Seq: seq().Draw(t, "seq"), Mid: id(128).Draw(t, "mid")}
			})
			return &Confirm{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Pairs: listOf(pair, 1, 64).Draw(t, "pairs")}
		}),
		"sub": frame(func(t *rapid.T) Frame {
			return &Sub{RID: rid.Draw(t, "rid"), Since: words(100).Draw(t, "since"), After: words(128).Draw(t, "after"), Limit: limit.Draw(t, "limit")}
		}),
		"send": frame(func(t *rapid.T) Frame {
			f := &Send{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Cmid: cmid.Draw(t, "cmid"), Body: maybe(words(300)).Draw(t, "body"),
				Data: or(dataObject()).Draw(t, "data"), ReplyTo: or(seq()).Draw(t, "reply_to")}
			if f.Body == nil && f.Data == nil {
				f.Data = []byte("{}")
			}
			return f
		}),
		"ack": frame(func(t *rapid.T) Frame {
			return &Ack{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Seq: seq().Draw(t, "seq"), RV: maybe(seq()).Draw(t, "rv")}
		}),
		"sync": frame(func(t *rapid.T) Frame {
			f := &Sync{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Tail: rapid.IntRange(0, 1000).Draw(t, "tail"), Limit: limit.Draw(t, "limit"), RV: maybe(seq()).Draw(t, "rv")}
			if f.Tail == 0 {
				f.After = seq().Draw(t, "after")
			}
			return f
		}),
		"history": frame(func(t *rapid.T) Frame {
			return &History{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Before: seq().Draw(t, "before"), Limit: limit.Draw(t, "limit")}
		}),
		"open": frame(func(t *rapid.T) Frame {
			return &Open{RID: rid.Draw(t, "rid"), Cmid: cmid.Draw(t, "cmid"), Kind: kind().Draw(t, "kind"), Members: users(0).Draw(t, "members"),
				Title: words(512).Draw(t, "title"), History: rapid.SampledFrom([]string{"joined", "all"}).Draw(t, "history")}
		}),
		"add": change("add", 1), "remove": change("remove", 1), "leave": change("leave", 0),
		"members": frame(func(t *rapid.T) Frame {
			return &Members{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), After: words(128).Draw(t, "after"), Limit: limit.Draw(t, "limit")}
		}),
		"typing": frame(func(t *rapid.T) Frame { return &Typing{RID: rid.Draw(t, "rid"), Conv: id(128).Draw(t, "conv")} }),
		"ping":   frame(func(t *rapid.T) Frame { return &Ping{RID: rid.Draw(t, "rid")} }),
	}
}

func answers() map[string]*rapid.Generator[Frame] {
	rid, conv := or(id(64)), id(128)
	code := rapid.SampledFrom([]posthorn.Code{posthorn.CodeBadFrame, posthorn.CodeUnavailable, posthorn.CodeNewEpoch, "LATER"})
	return map[string]*rapid.Generator[Frame]{
		"welcome": frame(func(t *rapid.T) Frame {
			return &Welcome{RID: rid.Draw(t, "rid"), User: id(128).Draw(t, "user"), Device: id(128).Draw(t, "device"), InstallEpoch: seq().Draw(t, "install"), Resume: words(64).Draw(t, "resume"),
				HeartbeatMS: seq().Draw(t, "hb"), MaxFrame: seq().Draw(t, "max"), Gateway: words(20).Draw(t, "gateway"), Epoch: seq().Draw(t, "epoch")}
		}),
		"confirmed": frame(func(t *rapid.T) Frame {
			return &Confirmed{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Seq: seq().Draw(t, "seq"), Mid: words(40).Draw(t, "mid")}
		}),
		"subbed": frame(func(t *rapid.T) Frame {
			return &Subbed{RID: rid.Draw(t, "rid"), Convs: listOf(listEntry(), 0, 4).Draw(t, "convs"), Next: words(128).Draw(t, "next"), Since: words(100).Draw(t, "since")}
		}),
		"sent": frame(func(t *rapid.T) Frame {
			f := &Sent{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Seq: seq().Draw(t, "seq"), Mid: id(40).Draw(t, "mid"), Dup: rapid.Bool().Draw(t, "dup"), Epoch: seq().Draw(t, "epoch"), At: seq().Draw(t, "at")}
			if !f.Dup {
				f.Prev = seq().Draw(t, "prev")
			}
			return f
		}),
		"acked": frame(func(t *rapid.T) Frame {
			return &Acked{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Delivered: seq().Draw(t, "delivered")}
		}),
		"page": frame(func(t *rapid.T) Frame { return &Page{RID: rid.Draw(t, "rid"), Page: page().Draw(t, "page")} }),
		"opened": frame(func(t *rapid.T) Frame {
			return &Opened{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Head: seq().Draw(t, "head"), Dup: rapid.Bool().Draw(t, "dup")}
		}),
		"memberlist": frame(func(t *rapid.T) Frame {
			m := rapid.Custom(func(t *rapid.T) posthorn.MemberInfo {
				return posthorn.MemberInfo{User: id(128).Draw(t, "user"), Name: words(40).Draw(t, "name"), Role: or(role()).Draw(t, "role"), Since: seq().Draw(t, "since")}
			})
			return &MemberList{RID: rid.Draw(t, "rid"), Conv: conv.Draw(t, "conv"), Members: listOf(m, 0, 4).Draw(t, "members"), Next: words(128).Draw(t, "next")}
		}),
		"pong":  frame(func(t *rapid.T) Frame { return &Pong{RID: rid.Draw(t, "rid")} }),
		"event": frame(func(t *rapid.T) Frame { return &Event{Prev: seq().Draw(t, "prev"), Ev: event().Draw(t, "ev")} }),
		"conv":  frame(func(t *rapid.T) Frame { return &Conv{Entry: listEntry().Draw(t, "entry")} }),
		"hint": frame(func(t *rapid.T) Frame {
			return &Hint{Conv: conv.Draw(t, "conv"), Head: seq().Draw(t, "head"), RV: seq().Draw(t, "rv"), Why: words(10).Draw(t, "why")}
		}),
		"error": frame(func(t *rapid.T) Frame {
			return &Error{RID: rid.Draw(t, "rid"), Code: code.Draw(t, "code"), Msg: words(80).Draw(t, "msg"), RetryMS: or(seq()).Draw(t, "retry")}
		}),
		"bye": frame(func(t *rapid.T) Frame {
			return &Bye{Code: code.Draw(t, "code"), ReconnectMS: or(seq()).Draw(t, "reconnect")}
		}),
	}
}
