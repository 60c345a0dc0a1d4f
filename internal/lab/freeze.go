package lab

import (
	"syscall"
)

// frozen is PostgreSQL's WAL writer, held still by SIGSTOP. It writes, whenever a page is full, what nobody waits for; that
// a crash may lose such transactions would otherwise be seen by luck only. Commits that somebody waits for do not need it.
type frozen struct {
	pid  int
	done bool
}

// freezeWALWriter holds it where it sleeps: in the middle of its work it might hold a lock that others need.
func (t *trial) freezeWALWriter() *frozen {
	w := &frozen{}
	t.until("the WAL writer to be held still in its sleep", func() (bool, error) {
		const asleep = `select pid, wait_event is not distinct from 'WalWriterMain' from pg_stat_activity where backend_type = 'walwriter'`
		var before, after bool
		if err := t.db.one(t.ctx, asleep, nil, &w.pid, &before); err != nil || !before {
			return false, err
		}
		if err := syscall.Kill(w.pid, syscall.SIGSTOP); err != nil {
			return false, err
		}
		err := t.db.one(t.ctx, asleep, nil, &w.pid, &after)
		if err != nil || !after {
			_ = syscall.Kill(w.pid, syscall.SIGCONT)
		}
		return after, err
	})
	t.cleanup(w.thaw)
	return w
}

// kill ends it with the crash that it is there for. PostgreSQL would wait for it in vain.
func (w *frozen) kill() {
	if !w.done {
		w.done = true
		_ = syscall.Kill(w.pid, syscall.SIGKILL) // the one error is that it has ended
	}
}

// thaw lets it go on where no crash has come.
func (w *frozen) thaw() {
	if !w.done {
		w.done = true
		_ = syscall.Kill(w.pid, syscall.SIGCONT)
	}
}
