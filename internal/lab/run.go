package lab

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Options of a run. Program must be set; the zero value of every other field is its default.
type Options struct {
	// Program is the posthorn that is put to the test: the server, and the SDK inside the devices.
	Program string
	// Seed of the first round; each further round adds one. Default 1.
	Seed int64
	// Rounds is how often each check is run. Default 1.
	Rounds int
	// Run names the folder of the evidence. Default: im- and the group of each check.
	Run string
	// Evidence is the folder above it. Default "evidence".
	Evidence string
	// PgBin is the folder of PostgreSQL's programs. Default: embedpg finds them.
	PgBin string
	// Patience bounds each wait. It is a deadline against hanging, never a measure. Default 15 s.
	Patience time.Duration
	// Version of the program.
	Version string
}

func (o *Options) fill() error {
	if o.Program == "" {
		return errors.New("lab: Options.Program is missing")
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	o.Rounds = max(o.Rounds, 1)
	if o.Evidence == "" {
		o.Evidence = "evidence"
	}
	if o.Patience <= 0 {
		o.Patience = 15 * time.Second
	}
	return nil
}

func (o *Options) versions(postgres string) map[string]string {
	return map[string]string{"posthorn": o.Version, "postgres": postgres, "go": runtime.Version()}
}

// Summary counts the verdicts of a run.
type Summary struct{ Passed, Failed, NotRun int }

// Run carries out the checks one after the other, prints a line for each and a table at the end, and writes the evidence.
// The error tells what kept the lab itself from working; a check that failed is counted, not an error.
func Run(ctx context.Context, opt Options, checks []Check, out io.Writer) (sum Summary, err error) {
	if err := opt.fill(); err != nil {
		return sum, err
	}
	l := &laboratory{opt: opt}
	defer func() { err = errors.Join(err, l.close()) }()
	var outcomes []*Outcome
	for round := range opt.Rounds {
		for i := range checks {
			o := l.outcome(ctx, &checks[i], opt.Seed+int64(round))
			outcomes = append(outcomes, o)
			printLine(out, o)
			sum.count(o)
		}
	}
	printTable(out, outcomes)
	return sum, errors.Join(err, writeEvidence(opt, outcomes, out))
}

func (s *Summary) count(o *Outcome) {
	switch o.Result.Result {
	case Pass:
		s.Passed++
	case Fail:
		s.Failed++
	default:
		s.NotRun++
	}
}

// Outcome is what came of one check, with what the report shows of it.
type Outcome struct {
	Result
	check     *Check
	history   []Record
	logs      string // folder below the evidence; "" unless it failed
	cancelled bool   // says nothing about the check, and is not written down
}

// laboratory keeps the PostgreSQL that checks share, and the files of a fresh one, of which those get a copy that need one
// of their own: making them takes longer than most checks.
type laboratory struct {
	opt    Options
	shared *cluster
	mold   string // folder; "" before the first need
}

func (l *laboratory) close() (err error) {
	if l.shared != nil {
		err = l.shared.close()
	}
	if l.mold != "" {
		err = errors.Join(err, os.RemoveAll(l.mold))
	}
	return err
}

// cast starts a cluster for a single check.
func (l *laboratory) cast(ctx context.Context, params map[string]string) (*cluster, error) {
	if l.mold == "" {
		c, err := startCluster(ctx, l.opt)
		if err != nil {
			return nil, err
		}
		l.mold = c.dir
		if err := c.Stop(ctx); err != nil {
			return nil, err
		}
	}
	dir, err := tempDir("posthorn-lab-pg-")
	if err != nil {
		return nil, err
	}
	if err := copyTree(filepath.Join(l.mold, "pg"), filepath.Join(dir, "pg"), nil); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c, err := launchCluster(ctx, l.opt, dir, params)
	if err != nil {
		return nil, err
	}
	c.own = true
	return c, nil
}

// outcome runs a check once.
func (l *laboratory) outcome(ctx context.Context, check *Check, seed int64) *Outcome {
	began := time.Now()
	o := l.attempt(ctx, check, seed)
	o.check, o.Duration = check, time.Since(began).Round(time.Millisecond).Seconds()
	if err := context.Cause(ctx); err != nil && o.Result.Result != Pass {
		o.Result.Result, o.cancelled = NotRun, true
		o.Observed = "interrupted: " + o.Observed
	}
	return o
}

func (l *laboratory) attempt(ctx context.Context, check *Check, seed int64) *Outcome {
	without := func(verdict string, err error) *Outcome {
		return &Outcome{Result: Result{Check: check.Name, Seed: seed, Versions: l.opt.versions(""), Fault: check.Fault,
			Expected: check.Must, Observed: strings.ReplaceAll(err.Error(), "\n", " "), Result: verdict}}
	}
	if err := context.Cause(ctx); err != nil {
		return without(NotRun, err)
	}
	c, done, err := l.cluster(ctx, check)
	if err != nil {
		if errors.Is(err, errNoPostgreSQL) {
			return without(NotRun, err)
		}
		return without(Fail, err)
	}
	t, err := newTrial(ctx, l.opt, c, check, seed)
	if err != nil {
		return without(Fail, errors.Join(err, done()))
	}
	t.run(check)
	o := t.outcome()
	if o.Result.Result == Fail && ctx.Err() == nil {
		if o.logs, err = keepLogs(l.opt, check, t, c); err != nil {
			o.Observed += "; the logs could not be kept: " + err.Error()
		}
	}
	if err := errors.Join(t.close(), done()); err != nil {
		o.Observed += "; left behind: " + strings.ReplaceAll(err.Error(), "\n", " ")
		o.Result.Result = Fail
	}
	return o
}

// cluster gives the PostgreSQL that a check runs on, and what to do with it afterwards.
func (l *laboratory) cluster(ctx context.Context, check *Check) (c *cluster, done func() error, err error) {
	if check.params != nil {
		if c, err = l.cast(ctx, check.params); err != nil {
			return nil, nil, err
		}
		return c, c.close, nil
	}
	if l.shared == nil {
		if l.shared, err = startCluster(ctx, l.opt); err != nil {
			return nil, nil, err
		}
	}
	return l.shared, func() error { return nil }, nil
}

// outcome sums a trial up.
func (t *trial) outcome() *Outcome {
	t.res.Expected, t.res.Observed = strings.Join(t.expected, ", "), strings.Join(t.observed, ", ")
	t.res.Result = Pass
	switch {
	case t.failed:
		t.res.Result = Fail
	case t.cannot != "":
		t.res.Result, t.res.Observed = NotRun, t.cannot
	}
	return &Outcome{Result: *t.res, history: t.hist.Records()}
}
