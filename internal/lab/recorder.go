package lab

import (
	"sync"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/client"
	"github.com/posthorn/posthorn/wire"
)

// recorder writes down what one client sees. It is the client's tracer, so nothing is asked of the client itself.
type recorder struct {
	who  string
	emit func(Record)

	mu    sync.Mutex        // guards what follows; held while a line is written, so that lines keep their order
	cmids map[string]string // rid → cmid of requests under way
	epoch int64             // of the newest session
}

func newRecorder(who string, emit func(Record)) *recorder {
	return &recorder{who: who, emit: emit, cmids: map[string]string{}}
}

// say writes a line of our own.
func (x *recorder) say(r Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(r)
}

func (x *recorder) put(r Record) {
	r.Who, r.At = x.who, time.Now()
	x.emit(r)
}

// Frame implements client.Tracer.
func (x *recorder) Frame(d client.Direction, f wire.Frame, _ []byte) {
	r := frameRecord(f)
	x.mu.Lock()
	defer x.mu.Unlock()
	if d == client.Out {
		r.What = Out
		if r.RID != "" && r.Cmid != "" {
			x.cmids[r.RID] = r.Cmid
		}
	} else {
		r.What = In
		if r.Cmid == "" && r.RID != "" {
			r.Cmid = x.cmids[r.RID]
		}
		if r.Type == "welcome" {
			x.epoch = r.Epoch
		} else if r.Epoch == 0 {
			r.Epoch = x.epoch // a connection lives in one epoch
		}
	}
	x.put(r)
}

// Stored implements client.Tracer; what was stored is told by the client's hook, event by event.
func (x *recorder) Stored(int, time.Duration) {}

// State implements client.Tracer.
func (x *recorder) State(s client.State) {
	r := Record{What: State, Type: s.Phase.String(), Install: s.Install, Epoch: s.Epoch}
	if s.Err != nil {
		r.Text = s.Err.Error()
	}
	x.say(r)
}

// applied is the client's hook.
func (x *recorder) applied(evs []posthorn.Event) {
	x.mu.Lock()
	epoch := x.epoch
	x.mu.Unlock()
	for i := range evs {
		r := eventRecord(Applied, &evs[i])
		r.Epoch = epoch
		x.say(r)
	}
}

func eventRecord(what string, ev *posthorn.Event) Record {
	return Record{What: what, Type: string(ev.Kind), Conv: ev.Conv, Seq: ev.Seq, Mid: ev.Mid, Cmid: ev.Cmid}
}

// frameRecord takes from a frame what the checker looks at. A token never gets here.
func frameRecord(f wire.Frame) Record {
	r := Record{Type: f.Type()}
	switch f := f.(type) {
	case *wire.Hello:
		r.RID = f.RID
		if f.Install != nil {
			r.Install = *f.Install
		}
	case *wire.Send:
		r.RID, r.Conv, r.Cmid = f.RID, f.Conv, f.Cmid
	case *wire.Change:
		r.RID, r.Conv, r.Cmid = f.RID, f.Conv, f.Cmid
	case *wire.Open:
		r.RID, r.Cmid = f.RID, f.Cmid
	case *wire.Ack:
		r.RID, r.Conv, r.Seq = f.RID, f.Conv, f.Seq
	case *wire.Sync:
		r.RID, r.Conv, r.Seq = f.RID, f.Conv, f.After
	case *wire.Sub:
		r.RID = f.RID
	default:
		serverRecord(&r, f)
	}
	return r
}

func serverRecord(r *Record, f wire.Frame) {
	switch f := f.(type) {
	case *wire.Welcome:
		r.RID, r.Install, r.Epoch = f.RID, f.InstallEpoch, f.Epoch
	case *wire.Sent:
		r.RID, r.Conv, r.Seq, r.Prev, r.Mid, r.Dup, r.Epoch = f.RID, f.Conv, f.Seq, f.Prev, f.Mid, f.Dup, f.Epoch
	case *wire.Acked:
		r.RID, r.Conv, r.Delivered = f.RID, f.Conv, f.Delivered
	case *wire.Event:
		r.Conv, r.Seq, r.Prev, r.Mid, r.Cmid = f.Ev.Conv, f.Ev.Seq, f.Prev, f.Ev.Mid, f.Ev.Cmid
	case *wire.Page:
		r.RID, r.Conv, r.Upto, r.Start, r.Head, r.Epoch = f.RID, f.Page.Conv, f.Page.Upto, f.Page.Start, f.Page.Head, f.Page.Epoch
		for i := range f.Page.Events {
			r.Events = append(r.Events, Ref{f.Page.Events[i].Seq, f.Page.Events[i].Mid})
		}
	case *wire.Conv:
		r.Conv, r.Head, r.Delivered, r.Start = f.Entry.Conv, f.Entry.Head, f.Entry.Delivered, f.Entry.Start
	case *wire.Subbed:
		r.RID = f.RID
		if len(f.Convs) == 1 { // the lab's users have one conversation
			e := &f.Convs[0]
			r.Conv, r.Head, r.Delivered, r.Start = e.Conv, e.Head, e.Delivered, e.Start
		}
	case *wire.Hint:
		r.Conv, r.Head, r.Why = f.Conv, f.Head, f.Why
	case *wire.Error:
		r.RID, r.Code, r.Text = f.RID, string(f.Code), f.Msg
	case *wire.Bye:
		r.Code = string(f.Code)
	case *wire.Opened:
		r.RID, r.Conv, r.Head, r.Dup = f.RID, f.Conv, f.Head, f.Dup
	}
}
