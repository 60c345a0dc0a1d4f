package wire

import "github.com/posthorn/posthorn"

// AppendEvent encodes an event frame without building one: it is what every push of every message is made of, and it
// allocates nothing where b has room.
func AppendEvent(b []byte, ev *posthorn.Event, prev int64) []byte {
	b = num(append(b, `{"t":"event"`...), `,"prev":`, prev)
	b = append(b, `,"ev":`...)
	return append(AppendEventBody(b, ev), '}')
}

// AppendEventBody encodes the event alone, the same in pushes, pages, lists and over HTTP. A recalled event goes out
// without content even where the caller still has it.
func AppendEventBody(b []byte, ev *posthorn.Event) []byte {
	b = str(b, `{"conv":`, ev.Conv)
	b = num(b, `,"seq":`, ev.Seq)
	b = str(b, `,"kind":`, ev.Kind)
	b = optStr(b, `,"mid":`, ev.Mid)
	b = optStr(b, `,"sender":`, ev.Sender)
	if ev.ViaServer {
		b = append(b, `,"via":"server"`...)
	}
	b = optStr(b, `,"cmid":`, ev.Cmid)
	if ev.Body != nil && !ev.Recalled {
		b = str(b, `,"body":`, *ev.Body)
	}
	if len(ev.Data) > 0 && !ev.Recalled {
		b = append(append(b, `,"data":`...), ev.Data...)
	}
	b = optNum(b, `,"reply_to":`, ev.ReplyTo)
	b = optNum(b, `,"target":`, ev.Target)
	if ev.Recalled {
		b = append(b, `,"recalled":true`...)
	}
	if !ev.At.IsZero() {
		b = num(b, `,"at":`, ev.At.UnixMilli())
	}
	return append(b, '}')
}
