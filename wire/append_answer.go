package wire

import "github.com/posthorn/posthorn"

func appendSent(b []byte, f *Sent) []byte {
	b = open(b, "sent", f.RID)
	b = str(b, `,"conv":`, f.Conv)
	b = num(b, `,"seq":`, f.Seq)
	if !f.Dup {
		b = num(b, `,"prev":`, f.Prev)
	}
	b = str(b, `,"mid":`, f.Mid)
	b = flag(b, `,"dup":`, f.Dup)
	b = num(b, `,"epoch":`, f.Epoch)
	return append(num(b, `,"at":`, f.At), '}')
}

// appendReply encodes the replies that are rare.
func appendReply(b []byte, f Frame) []byte {
	switch f := f.(type) {
	case *Welcome:
		b = open(b, "welcome", f.RID)
		b = str(b, `,"user":`, f.User)
		b = str(b, `,"device":`, f.Device)
		b = num(b, `,"install_epoch":`, f.InstallEpoch)
		b = optStr(b, `,"resume":`, f.Resume)
		b = num(b, `,"heartbeat_ms":`, f.HeartbeatMS)
		b = num(b, `,"max_frame":`, f.MaxFrame)
		b = optStr(b, `,"gateway":`, f.Gateway)
		b = num(b, `,"epoch":`, f.Epoch)
	case *Confirmed:
		b = open(b, "confirmed", f.RID)
		b = str(b, `,"conv":`, f.Conv)
		b = num(b, `,"seq":`, f.Seq)
		b = optStr(b, `,"mid":`, f.Mid)
	case *Subbed:
		b = append(open(b, "subbed", f.RID), ',')
		b = appendList(b, f.Convs, f.Next, f.Since)
	case *Opened:
		b = open(b, "opened", f.RID)
		b = str(b, `,"conv":`, f.Conv)
		b = num(b, `,"head":`, f.Head)
		b = flag(b, `,"dup":`, f.Dup)
	case *MemberList:
		b = open(b, "memberlist", f.RID)
		b = str(b, `,"conv":`, f.Conv)
		b = appendMembers(b, f.Members)
		b = optStr(b, `,"next":`, f.Next)
	case *Pong:
		b = open(b, "pong", f.RID)
	}
	return append(b, '}')
}

func appendMembers(b []byte, members []posthorn.MemberInfo) []byte {
	b = append(b, `,"members":[`...)
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = str(b, `{"user":`, m.User)
		b = optStr(b, `,"name":`, m.Name)
		b = optStr(b, `,"role":`, m.Role)
		b = append(num(b, `,"since":`, m.Since), '}')
	}
	return append(b, ']')
}
