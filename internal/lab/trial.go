package lab

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// trial is one run of one check. Its methods belong to the check's goroutine. A step that cannot be carried out ends the
// check: must, abort and what is built on them do not return then.
type trial struct {
	ctx  context.Context
	opt  Options
	seed int64
	rng  *rand.Rand
	dir  string // stores, logs, ready files; removed at the end
	key  string // admin key of all gateways
	hist *History
	sup  *supervisor
	db   *database
	smp  *sampler

	res      *Result
	expected []string
	observed []string
	failed   bool
	cannot   string // why this machine cannot run the check
	cmids    atomic.Int64
	clusters []*cluster // beside db's, closed at the end
	folders  []string   // of theirs, whatever came of them
	ends     []func()   // in the order in which they were asked for; run backwards
}

// gaveUp ends a check from within, as failed; unable, as one that this machine cannot run.
type (
	gaveUp struct{ why string }
	unable struct{ why string }
)

// abort ends the check as failed.
func (t *trial) abort(format string, args ...any) { panic(gaveUp{fmt.Sprintf(format, args...)}) }

// must ends the check where a step could not be carried out.
func (t *trial) must(err error) {
	if err != nil {
		t.abort("%v", err)
	}
}

// deadline bounds a wait; what says what was waited for.
func (t *trial) deadline(what string, args ...any) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.ctx, t.opt.Patience, fmt.Errorf("gave up after %v waiting for %s", t.opt.Patience, fmt.Sprintf(what, args...)))
}

// await waits for a line of the history.
func (t *trial) await(what string, fits func(*Record) bool) Record { return t.awaitN(what, 1, fits)[0] }

func (t *trial) awaitN(what string, n int, fits func(*Record) bool) []Record {
	ctx, cancel := t.deadline("%s", what)
	defer cancel()
	found, err := t.hist.await(ctx, n, fits)
	t.must(err)
	return found
}

// until waits for something that the database must be asked about.
func (t *trial) until(what string, ask func() (bool, error)) {
	ctx, cancel := t.deadline("%s", what)
	defer cancel()
	t.must(poll(ctx, ask))
}

// untilSessions waits until n sessions of the gateways, or more, fit a condition on pg_stat_activity.
func (t *trial) untilSessions(what, condition string, n int) {
	t.until(what, func() (bool, error) {
		have, err := t.db.sessions(t.ctx, condition)
		return have >= n, err
	})
}

// cleanup is run when the check is over, the last one first.
func (t *trial) cleanup(f func()) { t.ends = append(t.ends, f) }

// cmid makes a key that says where it is from.
func (t *trial) cmid() string {
	return fmt.Sprintf("lab-%d-%d", t.seed, t.cmids.Add(1))
}

// lastStart is when the newest process of this name was started.
func (t *trial) lastStart(name string) time.Time {
	found := t.hist.find(func(r *Record) bool { return r.Who == name && r.What == Started })
	if len(found) == 0 {
		return time.Time{}
	}
	return found[len(found)-1].At
}

// crashed is when something was killed last.
func (t *trial) crashed() (at time.Time) {
	for _, r := range t.hist.find(func(r *Record) bool { return r.What == Crash }) {
		at = r.At
	}
	return at
}

func (t *trial) tables() *Tables {
	ctx, cancel := t.deadline("the tables to be read")
	defer cancel()
	var tables *Tables
	t.must(poll(ctx, func() (ok bool, err error) {
		tables, err = t.db.tables(ctx)
		return err == nil, err
	}))
	return tables
}

// rows counts the events of a sender's cmid.
func (t *trial) rows(sender, cmid string) int { return len(t.tables().keyed(sender, cmid)) }

// run carries out the check.
func (t *trial) run(check *Check) {
	defer func() {
		p := recover()
		var end gaveUp
		switch p := p.(type) {
		case nil:
			return
		case unable:
			t.cannot = p.why
			return
		case gaveUp:
			end = p
		default:
			panic(p)
		}
		t.failed = true
		t.expected = append(t.expected, "and in full: "+check.Must)
		t.observed = append(t.observed, strings.ReplaceAll(end.why, "\n", " "))
	}()
	check.run(t)
}

// trialTime bounds a trial altogether.
const trialTime = 2 * time.Minute

// newTrial gives a check a database and a folder.
func newTrial(ctx context.Context, opt Options, c *cluster, check *Check, seed int64) (t *trial, err error) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(check.Name))
	t = &trial{opt: opt, seed: seed, rng: rand.New(rand.NewPCG(uint64(seed), h.Sum64())), hist: newHistory(), key: strings.Repeat("lab-key-", 5),
		res: &Result{Check: check.Name, Seed: seed, Versions: opt.versions(c.Version()), Fault: check.Fault}}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.dir, err = os.MkdirTemp("", "posthorn-lab-"); err != nil {
		return t, err
	}
	logs := filepath.Join(t.dir, "logs")
	if err = os.Mkdir(logs, 0o700); err != nil {
		return t, err
	}
	t.sup = &supervisor{dir: logs, hist: t.hist}
	var cancel context.CancelFunc
	t.ctx, cancel = context.WithTimeoutCause(ctx, trialTime, fmt.Errorf("the check took longer than %v", trialTime))
	t.cleanup(cancel)
	if t.db, err = c.database(t.ctx); err != nil {
		return t, err
	}
	if t.res.Fsync, t.res.SynchronousCommit, err = t.db.settings(t.ctx); err != nil {
		return t, err
	}
	t.smp = startSampler(t.ctx, t.db, t.hist)
	return t, nil
}

// close ends everything that the trial began; the order is doc.go's.
func (t *trial) close() (err error) {
	for i := len(t.ends) - 1; i >= 0; i-- {
		t.ends[i]()
	}
	if t.smp != nil {
		t.smp.done.Wait()
	}
	if t.sup != nil {
		t.sup.stop()
	}
	if t.db != nil {
		err = t.db.drop()
	}
	for _, c := range t.clusters {
		err = errors.Join(err, c.close())
	}
	for _, dir := range t.folders {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if t.dir != "" {
		err = errors.Join(err, os.RemoveAll(t.dir))
	}
	return err
}
