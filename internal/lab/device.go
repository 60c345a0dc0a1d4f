package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// device is a user's device: the SDK in a process of its own (device_process.go), with a store that outlives the process.
type device struct {
	t     *trial
	name  string // "bo/phone"
	token string
	store string

	*process
	in *os.File // its standard input
}

// device makes a token; the process comes with start.
func (t *trial) device(g *gateway, user, name string) *device {
	return &device{t: t, name: user + "/" + name, token: t.token(g, user, name), store: filepath.Join(t.dir, "stores", fileName(user+"-"+name)+".db")}
}

// start runs the device against a server's address and waits until it is online.
func (d *device) start(url string, settings ...setting) {
	d.begin(url, settings...)
	d.online()
}

// begin runs the device without waiting for anything.
func (d *device) begin(url string, settings ...setting) {
	r, w, err := os.Pipe()
	d.t.must(err)
	d.t.cleanup(func() { _ = w.Close() })
	prog := program{name: d.name, path: d.t.opt.Program, args: []string{"lab", "client"}, stdin: r, stdout: &deviceLines{hist: d.t.hist, name: d.name},
		env: []string{"POSTHORN_URL=" + url, "POSTHORN_DEVICE=" + d.name, "POSTHORN_STORE=" + d.store, "POSTHORN_TOKEN=" + d.token}}
	for _, set := range settings {
		set(&prog)
	}
	p, err := d.t.sup.start(prog)
	d.t.must(err)
	d.process, d.in = p, w
}

// online waits for a session of this process.
func (d *device) online() {
	from := d.t.lastStart(d.name)
	d.t.await(d.name+" to be online", func(r *Record) bool {
		return r.Who == d.name && r.What == State && r.Type == "online" && r.At.After(from)
	})
}

// withDeviceFault arms a device's fault points, by our own variable, so that both names are known to work.
func withDeviceFault(spec string) setting {
	return func(p *program) { p.env = append(p.env, "POSTHORN_FAULT="+spec) }
}

func withTimeout(d time.Duration) setting {
	return func(p *program) { p.env = append(p.env, "POSTHORN_REQUEST_TIMEOUT="+d.String()) }
}

func withAckEvery(n int) setting {
	return func(p *program) { p.env = append(p.env, "POSTHORN_ACK_EVERY="+strconv.Itoa(n)) }
}

func withAckAfter(d time.Duration) setting {
	return func(p *program) { p.env = append(p.env, "POSTHORN_ACK_AFTER="+d.String()) }
}

// command is one line to a device process.
type command struct {
	Do      string `json:"do"` // send, leave, dump, quit
	Conv    string `json:"conv,omitempty"`
	Cmid    string `json:"cmid,omitempty"`
	Body    string `json:"body,omitempty"`
	ReplyTo int64  `json:"reply_to,omitempty"`
}

func (d *device) tell(c command) {
	b, err := json.Marshal(c)
	d.t.must(err)
	if _, err := d.in.Write(append(b, '\n')); err != nil {
		d.t.abort("%s cannot be told to %s: %v", d.name, c.Do, err)
	}
}

// send puts a message into the device's outbox and returns when it is there, on disk.
func (d *device) send(conv, body string) (cmid string) { return d.reply(conv, body, 0) }

// reply is send for a message that answers another one.
func (d *device) reply(conv, body string, to int64) (cmid string) {
	cmid = d.t.cmid()
	d.tell(command{Do: "send", Conv: conv, Cmid: cmid, Body: body, ReplyTo: to})
	d.queued(cmid)
	return cmid
}

// leave puts a leave into the outbox; the client makes its cmid.
func (d *device) leave(conv string) (cmid string) {
	queued := func(r *Record) bool { return r.Who == d.name && r.What == Queued && r.Type == "leave" }
	before := d.t.hist.count(queued)
	d.tell(command{Do: "leave", Conv: conv})
	return d.t.awaitN(d.name+" to have queued its leave", before+1, queued)[before].Cmid
}

func (d *device) queued(cmid string) {
	d.t.await(fmt.Sprintf("%s to have %s in its outbox", d.name, cmid), func(r *Record) bool {
		return r.Who == d.name && r.What == Queued && r.Cmid == cmid
	})
}

// settled waits until an item was answered for good, and gives the answer.
func (d *device) settled(cmid string) Record {
	return d.t.await(fmt.Sprintf("%s to be answered for %s", d.name, cmid), func(r *Record) bool {
		return r.Who == d.name && r.What == Settled && r.Cmid == cmid
	})
}

// holds waits until the device has an event on its disk.
func (d *device) holds(conv string, seq int64) Record {
	return d.t.await(fmt.Sprintf("%s to have stored seq %d", d.name, seq), func(r *Record) bool {
		return r.Who == d.name && (r.What == Applied || r.What == Held) && r.Conv == conv && r.Seq == seq
	})
}

// dump asks what the store holds, and gives what is still in the outbox.
func (d *device) dump() (pending []Record) {
	tag := d.t.cmid()
	d.tell(command{Do: "dump", Cmid: tag})
	d.t.await(d.name+" to tell what it holds", func(r *Record) bool { return r.Who == d.name && r.What == Note && r.Cmid == tag })
	return d.t.hist.find(func(r *Record) bool { return r.Who == d.name && r.What == Pending && r.Text == tag })
}

// crash kills the device's process: what was not on its disk is gone.
func (d *device) crash() {
	d.t.hist.Add(Record{Who: d.name, What: Crash, Text: "kill -9"})
	d.kill()
}

// quit ends the device in peace: it confirms what it has stored, and closes its store.
func (d *device) quit() {
	d.tell(command{Do: "quit"})
	ctx, cancel := d.t.deadline("%s to quit", d.name)
	defer cancel()
	_, err := d.wait(ctx)
	d.t.must(err)
}

// deviceLines turns the output of a device process into the history. It is written to by one goroutine of os/exec.
type deviceLines struct {
	hist *History
	name string
	mu   sync.Mutex // guards rest
	rest []byte
}

func (l *deviceLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte{'\n'})
		if !ok {
			return len(p), nil
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			r = Record{What: Note, Text: "a line that cannot be read: " + string(line)}
		}
		r.Who = l.name
		l.hist.Add(r)
		l.rest = append([]byte(nil), rest...)
	}
}
