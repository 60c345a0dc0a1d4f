package lab

import (
	"sync"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

const (
	rollbacks     = 100
	rollbackFault = "send.before_commit:error:0:100"
)

// rollbackTakesNoSeq: in one gateway 100 transactions, sends and changes of members, are rolled back after their numbers
// were given, while another gateway writes to the same conversation. No number is lost by that, nor by duplicates.
func rollbackTakesNoSeq(t *trial) {
	a, b := t.gateway("A", withFault(rollbackFault)), t.gateway("B")
	conv := t.group(a, "ana", "bo")
	var made struct{ User string }
	ctx, cancel := t.deadline("a user")
	defer cancel()
	t.must(b.ask(ctx, "POST", "/users", map[string]string{"user": "cy"}, &made))
	ana, _ := t.peer(a, "ana", "phone", 0)
	bo, _ := t.peer(b, "bo", "phone", 0)

	requests := t.rollbackRequests(conv)
	kept := make([]string, 40)
	for i := range kept {
		kept[i] = t.cmid()
	}
	refused := 0
	var beside sync.WaitGroup
	var trouble any // what ended the other goroutine
	beside.Go(func() {
		defer func() { trouble = recover() }()
		for _, cmid := range kept {
			if _, err := bo.send(conv, cmid); err != nil {
				t.abort("a send beside the rollbacks was refused: %v", err)
			}
		}
	})
	for _, f := range requests {
		if _, err := ana.call(f); err != nil && err.Code == posthorn.CodeUnavailable {
			refused++
		}
	}
	beside.Wait()
	if trouble != nil {
		panic(trouble)
	}
	expect(t, "rolled back", rollbacks, refused)

	// The same requests again, and some that had been carried out.
	taken, dups := 0, 0
	for _, f := range requests[:20] {
		if _, err := ana.call(f); err == nil || err.Code == posthorn.CodeForbidden { // cy can be added once only
			taken++
		}
	}
	for _, cmid := range kept[:10] {
		if s, err := bo.send(conv, cmid); err == nil && s.Dup {
			dups++
		}
	}
	expect(t, "taken afterwards", 20, taken)
	expect(t, "duplicates", 10, dups)
	tables := t.tables()
	expect(t, "head minus rows", 0, tables.Heads[conv]-int64(len(tables.Rows)))
	t.judge(validP1(), validD1(), validD2())
}

// rollbackRequests are as many as are to be rolled back: messages, and here and there an add.
func (t *trial) rollbackRequests(conv string) (all []wire.Frame) {
	body := "rolled back"
	for range rollbacks {
		if t.rng.IntN(5) == 0 {
			all = append(all, &wire.Change{T: "add", Conv: conv, Cmid: t.cmid(), Users: []string{"cy"}})
			continue
		}
		all = append(all, &wire.Send{Conv: conv, Cmid: t.cmid(), Body: &body})
	}
	return all
}
