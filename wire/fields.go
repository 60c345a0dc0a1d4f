package wire

// field is a name that some frame, or a noun within one, knows.
type field uint8

const (
	fT field = iota
	fRID
	fToken
	fDevice
	fInstall
	fResume
	fEpoch
	fConv
	fPairs
	fSince
	fAfter
	fLimit
	fCmid
	fBody
	fData
	fReplyTo
	fSeq
	fRV
	fTail
	fBefore
	fKind
	fMembers
	fTitle
	fHistory
	fUsers
	fUser
	fInstallEpoch
	fHeartbeatMS
	fMaxFrame
	fGateway
	fMid
	fConvs
	fNext
	fPrev
	fDup
	fAt
	fDelivered
	fEvents
	fSkip
	fUpto
	fStart
	fHead
	fFloor
	fTruncated
	fMore
	fEv
	fSender
	fVia
	fTarget
	fRecalled
	fEntry
	fRole
	fRead
	fUnread
	fLast
	fLastAt
	fLeft
	fName
	fWhy
	fCode
	fMsg
	fRetryMS
	fReconnectMS
	nFields
)

// names and their places; neither is written to after the package is loaded.
var (
	fieldNames = [nFields]string{
		"t", "rid", "token", "device", "install", "resume", "epoch", "conv", "pairs", "since", "after", "limit", "cmid", "body",
		"data", "reply_to", "seq", "rv", "tail", "before", "kind", "members", "title", "history", "users", "user",
		"install_epoch", "heartbeat_ms", "max_frame", "gateway", "mid", "convs", "next", "prev", "dup", "at", "delivered",
		"events", "skip", "upto", "start", "head", "floor", "truncated", "more", "ev", "sender", "via", "target", "recalled",
		"entry", "role", "read", "unread", "last", "last_at", "left", "name", "why", "code", "msg", "retry_ms", "reconnect_ms",
	}
	fieldPlaces = func() map[string]field {
		m := make(map[string]field, nFields)
		for f, name := range fieldNames {
			m[name] = field(f)
		}
		return m
	}()
)

func (f field) String() string { return fieldNames[f] }

// object notes where the values of one JSON object lie; a field that did not come is nil. The slices point into the
// input and must not outlive the call.
type object struct {
	scan
	val [nFields][]byte
}

// collect walks the object to its end and tells whether it is one. What it does not know it steps over.
func (o *object) collect(b []byte) bool {
	o.scan = scan{b: b}
	if o.space(); b[o.i] != '{' {
		return false
	}
	for o.open(); o.more(); {
		name := o.name()
		val := o.value()
		if f, ok := fieldPlaces[string(name[1:len(name)-1])]; ok {
			o.val[f] = val
		} else if f, ok := escapedField(name); ok {
			o.val[f] = val
		}
	}
	return true
}

// escapedField is the field of a name written with escapes: "\u0074" is t, and jsontext counts it as a repeated t.
func escapedField(name []byte) (field, bool) {
	for _, c := range name {
		if c == '\\' {
			s, _ := unquote(name)
			f, ok := fieldPlaces[s]
			return f, ok
		}
	}
	return 0, false
}

func (o *object) has(f field) bool { return o.val[f] != nil }
