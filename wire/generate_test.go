package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/posthorn/posthorn"
)

// Generators of what is legal on the wire, in the shape that a decoder gives back: empty lists are nil, an open says
// its history, times have milliseconds.

func words(most int) *rapid.Generator[string] {
	return rapid.Map(rapid.StringN(0, most, most), func(s string) string {
		return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\n"), "\u2028")
	}).Filter(func(s string) bool { return len(s) <= most })
}

func id(most int) *rapid.Generator[string] {
	return words(most).Filter(func(s string) bool { return s != "" })
}

func seq() *rapid.Generator[int64] { return rapid.Int64Range(0, posthorn.MaxSeq) }

func maybe[T any](g *rapid.Generator[T]) *rapid.Generator[*T] { return rapid.Ptr(g, true) }

// or gives the zero value now and then: an absent field.
func or[T any](g *rapid.Generator[T]) *rapid.Generator[T] {
	var zero T
	return rapid.OneOf(rapid.Just(zero), g)
}

// listOf gives nil where the list is empty.
func listOf[T any](g *rapid.Generator[T], least, most int) *rapid.Generator[[]T] {
	return rapid.Map(rapid.SliceOfN(g, least, most), func(l []T) []T {
		if len(l) == 0 {
			return nil
		}
		return l
	})
}

func users(least int) *rapid.Generator[[]string] {
	return rapid.Map(rapid.SliceOfNDistinct(id(128), least, 5, rapid.ID[string]), func(l []string) []string {
		if len(l) == 0 {
			return nil
		}
		return l
	})
}

// dataObject makes a JSON object with the spaces, numbers and escapes that a re-encoding would change.
func dataObject() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		var b bytes.Buffer
		b.WriteString("{ ")
		for i, k := range rapid.SliceOfNDistinct(words(8), 0, 4, rapid.ID[string]).Draw(t, "keys") {
			if i > 0 {
				b.WriteString(" ,\n")
			}
			b.Write(quote(nil, k))
			b.WriteString(" : " + rapid.SampledFrom([]string{`1.50`, `9007199254740993`, `1e400`, `-0`, `null`, `[[{"a":[]}],true]`, `"\u00e9\/\ud83d\ude00"`}).Draw(t, "value"))
		}
		b.WriteString("}")
		return b.Bytes()
	})
}

func moment() *rapid.Generator[time.Time] {
	return rapid.Map(seq(), func(ms int64) time.Time { return time.UnixMilli(ms).UTC() })
}

func event() *rapid.Generator[posthorn.Event] {
	return rapid.Custom(func(t *rapid.T) posthorn.Event {
		ev := posthorn.Event{
			Conv: id(128).Draw(t, "conv"), Seq: seq().Draw(t, "seq"), Mid: words(40).Draw(t, "mid"), Sender: words(128).Draw(t, "sender"),
			Kind:      rapid.SampledFrom([]posthorn.Kind{"open", "msg", "edit", "recall", "react", "join", "leave", "meta", "later"}).Draw(t, "kind"),
			ViaServer: rapid.Bool().Draw(t, "via"), Cmid: words(64).Draw(t, "cmid"), ReplyTo: or(seq()).Draw(t, "reply_to"),
			Target: or(seq()).Draw(t, "target"), Recalled: rapid.Bool().Draw(t, "recalled"), At: or(moment()).Draw(t, "at"),
		}
		switch {
		case ev.Recalled:
		case ev.Kind.Membership():
			if ev.Users = users(0).Draw(t, "users"); ev.Users != nil {
				ev.Data, _ = json.Marshal(map[string]any{"users": ev.Users, "role": "member"})
			}
		default:
			ev.Body = maybe(words(200)).Draw(t, "body")
			ev.Data = or(dataObject()).Draw(t, "data")
		}
		return ev
	})
}

func listEntry() *rapid.Generator[posthorn.Entry] {
	return rapid.Custom(func(t *rapid.T) posthorn.Entry {
		return posthorn.Entry{
			Conv: id(128).Draw(t, "conv"), Kind: kind().Draw(t, "kind"), Title: words(64).Draw(t, "title"), Role: or(role()).Draw(t, "role"),
			Head: seq().Draw(t, "head"), Floor: seq().Draw(t, "floor"), Start: seq().Draw(t, "start"), Delivered: seq().Draw(t, "delivered"),
			Read: seq().Draw(t, "read"), Unread: seq().Draw(t, "unread"), RV: seq().Draw(t, "rv"), Last: maybe(event()).Draw(t, "last"),
			LastAt: or(moment()).Draw(t, "last_at"), Left: rapid.Bool().Draw(t, "left"), Epoch: seq().Draw(t, "epoch"),
		}
	})
}

func kind() *rapid.Generator[posthorn.ConvKind] {
	return rapid.SampledFrom([]posthorn.ConvKind{posthorn.Direct, posthorn.Group, posthorn.Channel})
}

func role() *rapid.Generator[posthorn.Role] {
	return rapid.SampledFrom([]posthorn.Role{posthorn.RoleOwner, posthorn.RoleAdmin, posthorn.RoleMember})
}

func page() *rapid.Generator[posthorn.Page] {
	return rapid.Custom(func(t *rapid.T) posthorn.Page {
		stretch := rapid.Custom(func(t *rapid.T) [2]int64 { return [2]int64{seq().Draw(t, "from"), seq().Draw(t, "to")} })
		return posthorn.Page{
			Conv: id(128).Draw(t, "conv"), Events: listOf(event(), 0, 4).Draw(t, "events"), Skip: listOf(stretch, 0, 4).Draw(t, "skip"),
			Upto: seq().Draw(t, "upto"), Start: seq().Draw(t, "start"), Head: seq().Draw(t, "head"), Floor: seq().Draw(t, "floor"),
			Truncated: rapid.Bool().Draw(t, "truncated"), More: rapid.Bool().Draw(t, "more"), RV: seq().Draw(t, "rv"), Epoch: seq().Draw(t, "epoch"),
		}
	})
}
