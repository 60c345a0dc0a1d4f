package wire

import (
	"bytes"
	"time"

	"github.com/posthorn/posthorn"
)

func (a *answer) eventIn(f field, tok []byte) posthorn.Event {
	var o answer
	o.enter(a, f, tok)
	defer o.leave(a)
	return o.event()
}

func (a *answer) event() posthorn.Event {
	ev := posthorn.Event{
		Conv: a.must(fConv), Seq: a.mustNum(fSeq), Kind: posthorn.Kind(a.must(fKind)), Mid: a.str(fMid), Sender: a.str(fSender),
		ViaServer: a.str(fVia) == "server", Cmid: a.str(fCmid), ReplyTo: a.num(fReplyTo), Target: a.num(fTarget),
		Recalled: a.flag(fRecalled), At: a.time(fAt),
	}
	if ev.Recalled {
		return ev // a tombstone has no content, whatever a server says
	}
	if a.value(fBody) != nil {
		body := a.str(fBody)
		ev.Body = &body
	}
	ev.Data = bytes.Clone(a.value(fData))
	if ev.Kind.Membership() {
		ev.Users = usersIn(ev.Data)
	}
	return ev
}

// time is a moment in milliseconds since 1970, the zero time where absent.
func (a *answer) time(f field) time.Time {
	if a.value(f) == nil {
		return time.Time{}
	}
	return time.UnixMilli(a.num(f)).UTC()
}

// usersIn reads {"users":[…]}, which the store makes for membership events. Data of another shape names nobody: it is
// kept and shown as it is, and must not stop the log.
func usersIn(data []byte) []string {
	var o answer
	if len(data) == 0 || !o.collect(data) {
		return nil
	}
	var users []string
	o.list(fUsers, func(tok []byte) {
		u, ok := text(tok)
		if !ok {
			o.fail(fUsers, "a list of strings")
		}
		users = append(users, u)
	})
	if o.err != nil {
		return nil
	}
	return users
}

func (a *answer) page() posthorn.Page {
	p := posthorn.Page{
		Conv: a.must(fConv), Upto: a.mustNum(fUpto), Start: a.mustNum(fStart), Head: a.mustNum(fHead), Floor: a.mustNum(fFloor),
		Truncated: a.flag(fTruncated), More: a.flag(fMore), RV: a.num(fRV), Epoch: a.mustNum(fEpoch),
	}
	a.list(fEvents, func(tok []byte) { p.Events = append(p.Events, a.eventIn(fEvents, tok)) })
	a.list(fSkip, func(tok []byte) {
		from, to, ok := span(tok)
		if !ok {
			a.fail(fSkip, "a list of [from, to]")
		}
		p.Skip = append(p.Skip, [2]int64{from, to})
	})
	return p
}

// span reads [from,to].
func span(tok []byte) (from, to int64, ok bool) {
	if tok[0] != '[' {
		return 0, 0, false
	}
	var ends [2]int64
	n := 0
	s := scan{b: tok}
	for s.open(); s.more(); n++ {
		e, ok := exact(s.value())
		if !ok || n == len(ends) {
			return 0, 0, false
		}
		ends[n] = e
	}
	return ends[0], ends[1], n == len(ends)
}

func (a *answer) entries() (list []posthorn.Entry) {
	a.list(fConvs, func(tok []byte) { list = append(list, a.entryIn(fConvs, tok)) })
	return list
}

func (a *answer) entryIn(f field, tok []byte) posthorn.Entry {
	var o answer
	o.enter(a, f, tok)
	defer o.leave(a)
	return o.entry()
}

func (a *answer) entry() posthorn.Entry {
	e := posthorn.Entry{
		Conv: a.must(fConv), Kind: posthorn.ConvKind(a.must(fKind)), Title: a.str(fTitle), Role: posthorn.Role(a.str(fRole)),
		Head: a.mustNum(fHead), Floor: a.mustNum(fFloor), Start: a.mustNum(fStart), Delivered: a.mustNum(fDelivered),
		Read: a.num(fRead), Unread: a.num(fUnread), RV: a.num(fRV), LastAt: a.time(fLastAt), Left: a.flag(fLeft), Epoch: a.mustNum(fEpoch),
	}
	if a.value(fLast) != nil {
		last := a.eventIn(fLast, a.value(fLast))
		e.Last = &last
	}
	return e
}

func (a *answer) members() (list []posthorn.MemberInfo) {
	a.list(fMembers, func(tok []byte) { list = append(list, a.memberIn(fMembers, tok)) })
	return list
}

func (a *answer) memberIn(f field, tok []byte) posthorn.MemberInfo {
	var o answer
	o.enter(a, f, tok)
	defer o.leave(a)
	return posthorn.MemberInfo{User: o.must(fUser), Name: o.str(fName), Role: posthorn.Role(o.str(fRole)), Since: o.num(fSince)}
}
