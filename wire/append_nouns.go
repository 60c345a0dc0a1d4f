package wire

import "github.com/posthorn/posthorn"

// AppendPageBody encodes a page without t and rid, as the HTTP calls answer it.
func AppendPageBody(b []byte, p *posthorn.Page) []byte {
	return append(appendPage(append(b, '{'), p), '}')
}

// AppendListBody encodes a page of a user's conversations without t and rid, as the HTTP calls answer it.
func AppendListBody(b []byte, l *posthorn.List) []byte {
	return append(appendList(append(b, '{'), l.Entries, l.Next, l.Since), '}')
}

// AppendEntry encodes one conversation of a user's list.
func AppendEntry(b []byte, e *posthorn.Entry) []byte {
	b = str(b, `{"conv":`, e.Conv)
	b = str(b, `,"kind":`, e.Kind)
	b = optStr(b, `,"title":`, e.Title)
	b = optStr(b, `,"role":`, e.Role)
	b = num(b, `,"head":`, e.Head)
	b = num(b, `,"floor":`, e.Floor)
	b = num(b, `,"start":`, e.Start)
	b = num(b, `,"delivered":`, e.Delivered)
	b = num(b, `,"read":`, e.Read)
	b = num(b, `,"unread":`, e.Unread)
	b = num(b, `,"rv":`, e.RV)
	if e.Last != nil {
		b = AppendEventBody(append(b, `,"last":`...), e.Last)
	}
	if !e.LastAt.IsZero() {
		b = num(b, `,"last_at":`, e.LastAt.UnixMilli())
	}
	b = flag(b, `,"left":`, e.Left)
	return append(num(b, `,"epoch":`, e.Epoch), '}')
}

// appendPage writes the fields between the braces. marks is absent until an issue builds reads.
func appendPage(b []byte, p *posthorn.Page) []byte {
	b = append(str(b, `"conv":`, p.Conv), `,"events":[`...)
	for i := range p.Events {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendEventBody(b, &p.Events[i])
	}
	b = append(b, `],"skip":[`...)
	for i, s := range p.Skip {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(num(num(b, `[`, s[0]), `,`, s[1]), ']')
	}
	b = num(b, `],"upto":`, p.Upto)
	b = num(b, `,"start":`, p.Start)
	b = num(b, `,"head":`, p.Head)
	b = num(b, `,"floor":`, p.Floor)
	b = flag(b, `,"truncated":`, p.Truncated)
	b = flag(b, `,"more":`, p.More)
	b = num(b, `,"rv":`, p.RV)
	return num(b, `,"epoch":`, p.Epoch)
}

// appendList writes the fields between the braces.
func appendList(b []byte, entries []posthorn.Entry, next, since string) []byte {
	b = append(b, `"convs":[`...)
	for i := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendEntry(b, &entries[i])
	}
	b = append(b, ']')
	b = optStr(b, `,"next":`, next)
	return optStr(b, `,"since":`, since)
}
