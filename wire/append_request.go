package wire

// appendRequest encodes what a client sends.
func appendRequest(b []byte, f Frame) []byte {
	switch f := f.(type) {
	case *Send:
		b = open(b, "send", f.RID)
		b = str(b, `,"conv":`, f.Conv)
		b = str(b, `,"cmid":`, f.Cmid)
		if f.Body != nil {
			b = str(b, `,"body":`, *f.Body)
		}
		if len(f.Data) > 0 {
			b = append(append(b, `,"data":`...), f.Data...)
		}
		b = optNum(b, `,"reply_to":`, f.ReplyTo)
	case *Ack:
		b = open(b, "ack", f.RID)
		b = str(b, `,"conv":`, f.Conv)
		b = num(b, `,"seq":`, f.Seq)
		b = ptrNum(b, `,"rv":`, f.RV)
	case *Sync:
		b = open(b, "sync", f.RID)
		b = str(b, `,"conv":`, f.Conv)
		if f.Tail > 0 {
			b = num(b, `,"tail":`, int64(f.Tail))
		} else {
			b = num(b, `,"after":`, f.After)
		}
		b = optNum(b, `,"limit":`, int64(f.Limit))
		b = ptrNum(b, `,"rv":`, f.RV)
	case *History:
		b = open(b, "history", f.RID)
		b = str(b, `,"conv":`, f.Conv)
		b = num(b, `,"before":`, f.Before)
		b = optNum(b, `,"limit":`, int64(f.Limit))
	case *Hello:
		b = open(b, "hello", f.RID)
		b = str(b, `,"token":`, f.Token)
		b = str(b, `,"device":`, f.Device)
		b = ptrNum(b, `,"install":`, f.Install)
		b = optStr(b, `,"resume":`, f.Resume)
		b = optNum(b, `,"epoch":`, f.Epoch)
	case *Sub:
		b = open(b, "sub", f.RID)
		b = optStr(b, `,"since":`, f.Since)
		b = optStr(b, `,"after":`, f.After)
		b = optNum(b, `,"limit":`, int64(f.Limit))
	case *Confirm:
		b = appendConfirm(b, f)
	case *Open:
		b = open(b, "open", f.RID)
		b = str(b, `,"cmid":`, f.Cmid)
		b = str(b, `,"kind":`, f.Kind)
		b = strs(b, `,"members":`, f.Members)
		b = optStr(b, `,"title":`, f.Title)
		b = optStr(b, `,"history":`, f.History)
	case *Change:
		b = open(b, f.T, f.RID)
		b = str(b, `,"conv":`, f.Conv)
		b = str(b, `,"cmid":`, f.Cmid)
		if len(f.Users) > 0 {
			b = strs(b, `,"users":`, f.Users)
		}
	case *Members:
		b = open(b, "members", f.RID)
		b = str(b, `,"conv":`, f.Conv)
		b = optStr(b, `,"after":`, f.After)
		b = optNum(b, `,"limit":`, int64(f.Limit))
	case *Ping:
		b = open(b, "ping", f.RID)
	case *Typing:
		b = open(b, "typing", f.RID)
		b = str(b, `,"conv":`, f.Conv)
		b = optStr(b, `,"user":`, f.User)
	default:
		return b
	}
	return append(b, '}')
}

func appendConfirm(b []byte, f *Confirm) []byte {
	b = open(b, "confirm", f.RID)
	b = append(str(b, `,"conv":`, f.Conv), `,"pairs":[`...)
	for i, p := range f.Pairs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(str(num(b, `[`, p.Seq), `,`, p.Mid), ']')
	}
	return append(b, ']')
}
