package lab

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMutants_Table: each check has its mutants, each of them fits the sources as they are, and says why.
func TestMutants_Table(t *testing.T) {
	for _, c := range Checks() {
		if !hasMutant(c.Name) || c.Mechanism == "" {
			t.Errorf("%s: nothing is known that would make it fail, or it does not name the mechanism", c.Name)
		}
	}
	names := map[string]bool{}
	for _, m := range Mutants() {
		if find(m.Check) == nil {
			t.Errorf("%s: there is no check %s", m.Name, m.Check)
		}
		if names[m.Name] || m.Why == "" || m.Shows == "" {
			t.Errorf("%s: its name is taken, or it does not say why and what it shows", m.Name)
		}
		names[m.Name] = true
		if _, err := m.mutate(root(t)); err != nil {
			t.Error(err)
		}
	}
}

// find gives the check of a name.
func find(name string) *Check {
	all := Checks()
	i := slices.IndexFunc(all, func(c Check) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

func hasMutant(check string) bool {
	for _, m := range Mutants() {
		if m.Check == check {
			return true
		}
	}
	return false
}

// TestMutants_Compile builds the changed package of each mutant: one that does not compile would prove nothing by failing.
func TestMutants_Compile(t *testing.T) {
	for _, m := range Mutants() {
		if err := m.compile(t.Context(), root(t), t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}

// TestMutants_AreCaught runs checks against programs without the mechanism that each is about, and demands that they fail:
// three by rotation, all of them at night. The rotation follows the sources, so that a commit always gets the same ones.
func TestMutants_AreCaught(t *testing.T) {
	all := Mutants()
	chosen := all
	if os.Getenv("POSTHORN_MUTANTS") != "all" && os.Getenv("POSTHORN_NIGHTLY") == "" {
		chosen = rotation(t, all, 3)
	}
	for _, m := range chosen {
		t.Logf("mutant %s against %s", m.Name, m.Check)
	}
	for _, m := range chosen {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			m.mustBeCaught(t)
		})
	}
}

func (m *Mutant) mustBeCaught(t *testing.T) {
	tmp := workFolder(t)
	bin := filepath.Join(tmp, "posthorn")
	if err := m.program(t.Context(), root(t), tmp, bin); err != nil {
		t.Fatal(err)
	}
	out, code := labRun(t, bin, tmp, "--patience", "5s", "--run", "mutant", m.Check)
	t.Logf("%s\n%s", m.Why, out)
	e := readEvidence(t, filepath.Join(tmp, "evidence", "mutant"))
	if len(e.Results) != 1 {
		t.Fatalf("evidence %+v", e.Results)
	}
	switch r := e.Results[0]; {
	case r.Result != Fail || code != 1:
		t.Errorf("%s says %s (exit status %d) of a program of which this is true: %s", m.Check, r.Result, code, m.Why)
	case !slices.ContainsFunc(strings.Split(m.Shows, "|"), func(one string) bool { return strings.Contains(r.Observed, one) }):
		t.Errorf("%s fails, and does not show %q: %s", m.Check, m.Shows, r.Observed)
	}
	logs, _ := filepath.Glob(filepath.Join(tmp, "evidence", "mutant", m.Check+"-*", "history.jsonl"))
	if len(logs) != 1 {
		t.Errorf("a failure has kept %d histories", len(logs))
	}
	mustBeEmpty(t, bin, tmp)
}

// rotation picks n of them, spread over the table, beginning where the sources say.
func rotation(t *testing.T, all []Mutant, n int) (some []Mutant) {
	sum := sha256.New()
	for _, m := range all {
		text, err := m.mutate(root(t))
		if err != nil {
			t.Fatal(err)
		}
		sum.Write([]byte(text))
	}
	first := int(binary.BigEndian.Uint32(sum.Sum(nil)) % uint32(len(all)))
	for i := range n {
		some = append(some, all[(first+i*len(all)/n)%len(all)])
	}
	return some
}
