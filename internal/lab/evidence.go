package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The verdicts.
const (
	Pass   = "PASS"
	Fail   = "FAIL"
	NotRun = "NOT_RUN"
)

// Result is what the evidence holds of one check; docs/lab.md explains the fields. null: the check has no such thing.
type Result struct {
	Check             string            `json:"check"`
	Seed              int64             `json:"seed"`
	Versions          map[string]string `json:"versions"`
	Fsync             string            `json:"fsync"`
	SynchronousCommit string            `json:"synchronous_commit"`
	Fault             string            `json:"fault"`
	GatewayExit       *int              `json:"gateway_exit"`
	FirstReply        *string           `json:"first_reply"`
	RowsAfterCrash    *int              `json:"rows_after_crash"`
	RowsAfterResend   *int              `json:"rows_after_resend"`
	ResendDup         *bool             `json:"resend_dup"`
	OutboxLeft        *int              `json:"outbox_left"`
	Expected          string            `json:"expected"`
	Observed          string            `json:"observed"`
	Result            string            `json:"result"`
	Duration          float64           `json:"duration"` // seconds
}

// evidence is a file result.json. A verdict that a later run of the same seed contradicted is kept in Flaky.
type evidence struct {
	Run     string   `json:"run"`
	Written string   `json:"written"`
	Results []Result `json:"results"`
	Flaky   []Result `json:"flaky"`
}

// take puts a new result in the place of the one of the same check and seed, if there is one.
func (e *evidence) take(r Result) {
	for i := range e.Results {
		old := &e.Results[i]
		if old.Check != r.Check || old.Seed != r.Seed {
			continue
		}
		if old.Result != r.Result {
			e.Flaky = append(e.Flaky, *old)
		}
		*old = r
		return
	}
	e.Results = append(e.Results, r)
}

// runName is the folder that a check's evidence goes to.
func (o *Options) runName(c *Check) string {
	if o.Run != "" {
		return o.Run
	}
	return "im-" + c.group()
}

// writeEvidence adds the outcomes to the files of their runs, and writes the reports.
func writeEvidence(opt Options, outcomes []*Outcome, out io.Writer) error {
	byRun := map[string][]*Outcome{}
	var order []string
	for _, o := range outcomes {
		if o.cancelled {
			continue
		}
		run := opt.runName(o.check)
		if byRun[run] == nil {
			order = append(order, run)
		}
		byRun[run] = append(byRun[run], o)
	}
	for _, run := range order {
		dir := filepath.Join(opt.Evidence, run)
		e, err := addEvidence(dir, run, byRun[run])
		if err != nil {
			return fmt.Errorf("evidence: %w", err)
		}
		if err := writeReport(filepath.Join(dir, "report.html"), run, byRun[run], e.Flaky); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		for _, r := range e.Flaky {
			fmt.Fprintf(out, "flaky: %s with seed %d was %s once: %s\n", r.Check, r.Seed, r.Result, r.Observed)
		}
		fmt.Fprintf(out, "evidence: %s\n", filepath.Join(dir, "result.json"))
	}
	return nil
}

func addEvidence(dir, run string, outcomes []*Outcome) (*evidence, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "result.json")
	e := &evidence{Results: []Result{}, Flaky: []Result{}}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(b, e); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err) // never overwritten unread
		}
	}
	e.Run, e.Written = run, time.Now().UTC().Format(time.RFC3339)
	for _, o := range outcomes {
		e.take(o.Result)
	}
	if b, err = json.MarshalIndent(e, "", "  "); err != nil {
		return nil, err
	}
	return e, replaceFile(path, append(b, '\n'))
}

// replaceFile leaves the old or the new content, never half.
func replaceFile(path string, content []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, content, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// keepLogs copies what the processes of a failed trial wrote, and its history, into the evidence.
func keepLogs(opt Options, check *Check, t *trial, c *cluster) (string, error) {
	name := fmt.Sprintf("%s-seed%d-%s", check.Name, t.seed, time.Now().UTC().Format("20060102T150405.000"))
	dir := filepath.Join(opt.Evidence, opt.runName(check), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	logs, err := filepath.Glob(filepath.Join(t.sup.dir, "*.log"))
	if err != nil {
		return "", err
	}
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(path)), b, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "postgres.log"), []byte(c.pgLog(400)+"\n"), 0o644); err != nil {
		return "", err
	}
	f, err := os.Create(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		return "", err
	}
	return name, errors.Join(t.hist.write(f), f.Close())
}
