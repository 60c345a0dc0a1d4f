package lab

import (
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

const (
	replacements = 24
	shortLease   = 1500 * time.Millisecond
)

// replaced: one device connects to two gateways, at once or one after the other. In the end one connection lives, and the
// other one was told that it was replaced. A client that is told so stays away. A gateway that is cut off from the database
// pushes to nobody, and lets go of the device as soon as it hears of its other connection.
func replaced(t *trial) {
	net := t.cable(t.db.c)
	a := t.gateway("A", withSweep(0), by(t, net), withFlags("--lease", shortLease.String()))
	b := t.gateway("B", withSweep(0))
	conv := t.group(a, "ana", "bo", "cy")
	ana, _ := t.peer(b, "ana", "phone", 0)
	away := t.stayAway(a, b, conv)

	p, install := t.peer(a, "bo", "phone", 0)
	p.close()
	both, none := 0, 0
	for i := range replacements {
		first, second := a, b
		if t.rng.IntN(2) == 0 {
			first, second = b, a
		}
		live, byes := t.twice(first, second, install, i%3 == 0)
		switch {
		case live > 1:
			both++
		case live < 1 || byes != 1:
			none++
		}
	}
	expect(t, "rounds with two live connections", 0, both)
	expect(t, "rounds with none, or without a bye", 0, none)

	t.cutOff(net, a, b, ana, install, conv)
	welcomes := t.hist.count(func(r *Record) bool { return r.Who == away.name && r.frame(In, "welcome") })
	expect(t, "sessions of the client that was replaced", 1, welcomes)
	t.judge(validD1(), validP1(), validV1())
}

// stayAway has a client replaced by a connection that says its install; it is watched until the end of the check.
func (t *trial) stayAway(a, b *gateway, conv string) *device {
	d := t.device(a, "cy", "phone")
	d.start(a.url)
	d.upToDate(conv, 1)
	t.peer(b, "cy", "phone", t.lastInstall(d.name))
	t.await(d.name+" to be replaced", func(r *Record) bool { return r.Who == d.name && r.What == State && r.Type == "replaced" })
	return d
}

func (t *trial) lastInstall(who string) int64 {
	all := t.hist.find(func(r *Record) bool { return r.Who == who && r.frame(In, "welcome") })
	return all[len(all)-1].Install
}

// twice connects bo's phone at two gateways, and counts what is left when one was told to go, or nobody is any more.
func (t *trial) twice(first, second *gateway, install int64, oneByOne bool) (live, byes int) {
	from := len(t.hist.Records())
	peers := make([]*peer, 2)
	if oneByOne {
		peers[0], _ = t.peer(first, "bo", "phone", install)
		peers[1], _ = t.peer(second, "bo", "phone", install)
	} else {
		p, q := t.greeting(first, "bo", "phone"), t.greeting(second, "bo", "phone")
		one := t.beside(func(<-chan struct{}) { p.hello(install) })
		q.hello(install)
		one.wait()
		peers[0], peers[1] = p, q
	}
	ctx, cancel := t.deadline("one of two connections to be replaced")
	defer cancel()
	_ = poll(ctx, func() (bool, error) { // counted below, however it ended
		byes = 0
		for _, r := range t.hist.Records()[from:] {
			if r.frame(In, "bye") && r.Code == string(posthorn.CodeReplaced) && r.device() == "bo/phone" {
				byes++
			}
		}
		return byes > 0, nil
	})
	for _, p := range peers {
		if p.lives() {
			live++
		}
		p.close()
	}
	return live, byes
}

// lives asks for something; a connection that was told bye is closing.
func (p *peer) lives() bool {
	ctx, cancel := p.t.deadline("%s to answer a ping", p.name)
	defer cancel()
	_, err := p.conn.Call(ctx, &wire.Sub{})
	return err == nil
}

// cutOff: the device goes to B while A cannot reach the database. A suspends: nothing is pushed there; and as soon as A is
// back it says bye.
func (t *trial) cutOff(net *cable, a, b *gateway, ana *peer, install int64, conv string) {
	old, _ := t.peer(a, "bo", "phone", install)
	old.sub()
	net.freeze()
	t.hist.Add(Record{Who: "A", What: Note, Text: "cut off from the database"})
	moved, _ := t.peer(b, "bo", "phone", install)
	moved.sub()
	ana.mustSend(conv)
	t.until("A to suspend", func() (bool, error) {
		ctx, cancel := t.deadline("A's conditions")
		defer cancel()
		ok, _, err := a.conditions(ctx)
		return !ok, err
	})
	sent := ana.mustSend(conv)
	t.await("the device to be pushed through B", func(r *Record) bool { return r.Who == moved.name && r.frame(In, "event") && r.Seq == sent.Seq })
	net.heal()
	t.await("A to say that it was replaced", func(r *Record) bool {
		return r.Who == old.name && r.frame(In, "bye") && r.Code == string(posthorn.CodeReplaced)
	})
	expect(t, "pushed by the gateway that was cut off", 0, t.pushed(old.name, conv, sent.Seq))
	expect(t, "the other connection", "lives", map[bool]string{true: "lives", false: "is gone"}[moved.lives()])
}
