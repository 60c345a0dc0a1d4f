package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLab_EveryCheckPasses carries out all checks as a user would, from the command line of a freshly built program, and
// reads the evidence.
func TestLab_EveryCheckPasses(t *testing.T) {
	bin, tmp := theProgram(t), workFolder(t)
	rounds := "1"
	if os.Getenv("POSTHORN_NIGHTLY") != "" {
		rounds = "3"
	}
	seed := "1"
	if s := os.Getenv("POSTHORN_SEED"); s != "" {
		seed = s
	}
	// Two labs at once, of different groups: most of the time of most checks is spent in waiting.
	var both sync.WaitGroup
	for _, names := range [][]string{{"04-*", "05-*", "06-*", "08-*", "09-*"}, {"07-*", "10-*", "12-*"}} {
		both.Go(func() {
			out, code := labRun(t, bin, tmp, append([]string{"--rounds", rounds, "--seed", seed}, names...)...)
			t.Logf("\n%s", out)
			if code != 0 {
				t.Errorf("exit status %d", code)
			}
		})
	}
	both.Wait()
	results := map[string][]Result{}
	for _, c := range Checks() {
		for _, r := range readEvidence(t, filepath.Join(tmp, "evidence", "im-"+c.group())).Results {
			if r.Check == c.Name {
				results[r.Check] = append(results[r.Check], r)
			}
		}
	}
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if len(results[c.Name]) == 0 {
				t.Error("no result")
			}
			for _, r := range results[c.Name] {
				if r.Result != Pass {
					t.Errorf("%s: expected %s; observed %s", r.Result, r.Expected, r.Observed)
				}
				if r.Fsync != "on" || r.SynchronousCommit != "on" {
					t.Errorf("fsync=%s synchronous_commit=%s", r.Fsync, r.SynchronousCommit)
				}
			}
		})
	}
	mustBeEmpty(t, bin, tmp)
}

func readEvidence(t testing.TB, dir string) *evidence {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e evidence
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "report.html")); err != nil {
		t.Error(err)
	}
	return &e
}

// TestLab_Fields: a result has the fields that docs/lab.md promises, all of them, and no other.
func TestLab_Fields(t *testing.T) {
	b, err := json.Marshal(Result{})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("check seed versions fsync synchronous_commit fault gateway_exit first_reply rows_after_crash rows_after_resend " +
		"resend_dup outbox_left expected observed result duration")
	slices.Sort(want)
	if have := slices.Sorted(maps.Keys(got)); !slices.Equal(have, want) {
		t.Errorf("fields %q, want %q", have, want)
	}
}

// TestLab_InterruptLeavesNothing: Ctrl-C in the middle of a check ends every process, removes every folder, and is no
// verdict.
func TestLab_InterruptLeavesNothing(t *testing.T) {
	bin, tmp := theProgram(t), workFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := labCommand(ctx, bin, tmp, "06-lost-reply-retry", "06-lost-ack")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	// The first check is over, so the second one is under way.
	lines := bufio.NewScanner(r)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), Pass) {
		t.Errorf("the first line is %q", lines.Text())
	}
	cancel()
	var rest strings.Builder
	for lines.Scan() {
		rest.WriteString(lines.Text() + "\n")
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit status %d, want 3; it said:\n%s", code, rest.String())
	}
	if !strings.Contains(rest.String(), NotRun) {
		t.Errorf("nobody said that a check was not run:\n%s", rest.String())
	}
	if e := readEvidence(t, filepath.Join(tmp, "evidence", "im-06")); len(e.Results) != 1 || e.Results[0].Check != "06-lost-reply-retry" {
		t.Errorf("the evidence holds %+v", e.Results)
	}
	mustBeEmpty(t, bin, tmp)
}

// TestLab_WithoutPostgreSQL: what cannot be run is told so, with the reason, and the exit status is not that of success.
func TestLab_WithoutPostgreSQL(t *testing.T) {
	bin, tmp := theProgram(t), workFolder(t)
	out, code := labRun(t, bin, tmp, "--pg-bin", filepath.Join(tmp, "tmp"), "06-lost-ack")
	e := readEvidence(t, filepath.Join(tmp, "evidence", "im-06"))
	if code != 3 || len(e.Results) != 1 || e.Results[0].Result != NotRun || !strings.Contains(e.Results[0].Observed, "PostgreSQL") {
		t.Errorf("exit status %d, evidence %+v, output:\n%s", code, e.Results, out)
	}
	mustBeEmpty(t, bin, tmp)
}

func TestLab_Select(t *testing.T) {
	for pattern, want := range map[string]int{"*": len(Checks()), "06-crash-*": 3, "04-*": 1, "06-lost-ack": 1, "12-restore*": 3} {
		got, err := Select([]string{pattern})
		if err != nil || len(got) != want {
			t.Errorf("%s gives %d checks, want %d (%v)", pattern, len(got), want, err)
		}
	}
	for _, pattern := range []string{"05-nothing", "06-[", ""} {
		if got, err := Select([]string{pattern}); err == nil {
			t.Errorf("%q gives %d checks", pattern, len(got))
		}
	}
	if got, err := Select([]string{"06-lost-ack", "06-lost-*", "06-lost-ack"}); err != nil || len(got) != 4 {
		t.Errorf("overlapping patterns give %d checks (%v)", len(got), err)
	}
}

// TestLab_Flaky: a verdict that the same seed contradicts later is kept; one that it confirms is not doubled.
func TestLab_Flaky(t *testing.T) {
	var e evidence
	for _, r := range []Result{{Check: "a", Seed: 1, Result: Pass}, {Check: "a", Seed: 2, Result: Fail, Observed: "once"}, {Check: "a", Seed: 1, Result: Pass},
		{Check: "a", Seed: 2, Result: Pass}, {Check: "b", Seed: 2, Result: Pass}} {
		e.take(r)
	}
	if len(e.Results) != 3 || len(e.Flaky) != 1 || e.Flaky[0].Observed != "once" {
		t.Errorf("results %+v, flaky %+v", e.Results, e.Flaky)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "result.json"), []byte("{broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := addEvidence(dir, "x", nil); err == nil {
		t.Error("evidence that cannot be read was overwritten")
	}
}

// TestLab_Await: a wait ends with what it waited for, however late it comes, and with its context otherwise.
func TestLab_Await(t *testing.T) {
	h := newHistory()
	got := make(chan []Record)
	go func() {
		r, _ := h.await(context.Background(), 2, func(r *Record) bool { return r.Seq == 7 })
		got <- r
	}()
	for seq := range int64(10) {
		h.Add(Record{Seq: seq})
	}
	h.Add(Record{Seq: 7, What: Note})
	if r := <-got; len(r) != 2 || r[1].What != Note {
		t.Errorf("got %+v", r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := h.await(ctx, 1, func(r *Record) bool { return r.Seq == 11 }); err == nil {
		t.Error("a wait for what never comes ended well")
	}
}
