package lab

import (
	"errors"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/wire"
)

// peer is a connection on which the lab says frames by hand: what no well-made client would say, or at a moment that none
// would choose.
type peer struct {
	t             *trial
	name          string // "bo/phone@A": the device and the gateway
	device, token string
	conn          *client.Conn
	done          chan struct{} // closed when the frames have ended
}

// peer connects a device. install 0 asks for a new install, as a device does that has none.
func (t *trial) peer(g *gateway, user, name string, install int64) (*peer, int64) {
	p := t.greeting(g, user, name)
	return p, p.hello(install)
}

// greeting opens a connection on which nothing was said.
func (t *trial) greeting(g *gateway, user, name string) *peer {
	p := &peer{t: t, name: user + "/" + name + "@" + g.name, device: name, done: make(chan struct{})}
	rec := newRecorder(p.name, t.hist.Add)
	p.token = t.token(g, user, name)
	ctx, cancel := t.deadline("%s to be connected", p.name)
	defer cancel()
	var err error
	p.conn, err = client.Dial(ctx, g.url, &client.DialOptions{Tracer: rec})
	t.must(err)
	t.cleanup(p.close)
	go func() {
		defer close(p.done)
		for range p.conn.Frames() { // the recorder has seen them
		}
	}()
	return p
}

// hello begins the session and gives its install.
func (p *peer) hello(install int64) int64 {
	ctx, cancel := p.t.deadline("%s to be welcomed", p.name)
	defer cancel()
	h := &wire.Hello{Token: p.token, Device: p.device}
	if install != 0 {
		h.Install = &install
	}
	w, err := p.conn.Hello(ctx, h)
	p.t.must(err)
	return w.InstallEpoch
}

func (p *peer) close() {
	_ = p.conn.Close()
	<-p.done
}

// call sends a request and waits for its answer; the error is the server's own where it refuses.
func (p *peer) call(f wire.Frame) (wire.Frame, *posthorn.Error) {
	ctx, cancel := p.t.deadline("%s to be answered for its %s", p.name, f.Type())
	defer cancel()
	r, err := p.conn.Call(ctx, f)
	var refused *posthorn.Error
	if errors.As(err, &refused) {
		return nil, refused
	}
	p.t.must(err)
	return r, nil
}

// send sends a message.
func (p *peer) send(conv, cmid string) (*wire.Sent, *posthorn.Error) {
	body := "peer"
	r, refused := p.call(&wire.Send{Conv: conv, Cmid: cmid, Body: &body})
	if refused != nil {
		return nil, refused
	}
	return as[*wire.Sent](p, r), nil
}

// write sends a message and waits for nothing.
func (p *peer) write(conv string) (cmid string) {
	body := "written"
	cmid = p.t.cmid()
	p.t.must(p.conn.Write(&wire.Send{RID: cmid, Conv: conv, Cmid: cmid, Body: &body}))
	return cmid
}

// sent waits for the answer to a message that was written.
func (p *peer) sent(cmid string) Record {
	r := p.t.await(p.name+" to be answered for "+cmid, func(r *Record) bool {
		return r.Who == p.name && r.What == In && r.Cmid == cmid && (r.Type == "sent" || r.Type == "error")
	})
	if r.Type == "error" {
		p.t.abort("%s: %s was refused: %s %s", p.name, cmid, r.Code, r.Text)
	}
	return r
}

// mustSend sends a message that has to be taken.
func (p *peer) mustSend(conv string) *wire.Sent {
	s, refused := p.send(conv, p.t.cmid())
	if refused != nil {
		p.t.abort("%s: a send was refused: %v", p.name, refused)
	}
	return s
}

// mustChange adds or removes somebody.
func (p *peer) mustChange(what, conv, user string) *wire.Sent {
	r, refused := p.call(&wire.Change{T: what, Conv: conv, Cmid: p.t.cmid(), Users: []string{user}})
	if refused != nil {
		p.t.abort("%s: %s %s was refused: %v", p.name, what, user, refused)
	}
	return as[*wire.Sent](p, r)
}

// ack asks for an answer of its own.
func (p *peer) ack(conv string, seq int64) (int64, *posthorn.Error) {
	r, refused := p.call(&wire.Ack{Conv: conv, Seq: seq})
	if refused != nil {
		return 0, refused
	}
	return as[*wire.Acked](p, r).Delivered, nil
}

// sub begins the pushes, and gives what the list says of the one conversation.
func (p *peer) sub() posthorn.Entry {
	r, refused := p.call(&wire.Sub{})
	if refused != nil {
		p.t.abort("%s: sub was refused: %v", p.name, refused)
	}
	s := as[*wire.Subbed](p, r)
	if len(s.Convs) != 1 {
		p.t.abort("%s is in %d conversations", p.name, len(s.Convs))
	}
	return s.Convs[0]
}

// sync reads everything above after, and notes it as stored: a peer's store is the history itself.
func (p *peer) sync(conv string, after int64) *posthorn.Page { return p.syncSome(conv, after, 500) }

func (p *peer) syncSome(conv string, after int64, limit int) *posthorn.Page {
	r, refused := p.call(&wire.Sync{Conv: conv, After: after, Limit: limit})
	if refused != nil {
		p.t.abort("%s: sync was refused: %v", p.name, refused)
	}
	page := &as[*wire.Page](p, r).Page
	for i := range page.Events {
		ev := eventRecord(Applied, &page.Events[i])
		ev.Who = p.name
		p.t.hist.Add(ev)
	}
	return page
}

func as[F wire.Frame](p *peer, f wire.Frame) F {
	got, ok := f.(F)
	if !ok {
		p.t.abort("%s was answered with %s", p.name, f.Type())
	}
	return got
}

// hinted waits for a hint that came after a moment.
func (p *peer) hinted(after time.Time) Record {
	return p.t.await("a hint for "+p.name, func(r *Record) bool { return r.Who == p.name && r.frame(In, "hint") && r.At.After(after) })
}
