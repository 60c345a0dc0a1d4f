package posthorn_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// Cases are faults that users of comparable systems have met. Each is a test named after its id (TestB01_…), in the
// package where it belongs, with each of its inputs as a sub-test. An input that needs a part which is not built yet
// stands in testdata/cases-pending.txt, and this file fails as soon as the part exists and its line is still there.
//
// Of a case that begins with ~ some inputs are shown already; its day comes with a later part.
var cases = []struct{ id, title string }{
	{"B01", "U+0000 inside a message"},
	{"B02", "same cmid, different body"},
	{"B04", "scope and lifetime of the key that finds duplicates"},
	{"B07", "a higher seq is seen first"},
	{"B08", "read in order, handed out out of order"},
	{"B09", "the sender's clock decides the place of the message"},
	{"B11", "one conversation's limit leaks into the next"},
	{"B13", "edges of membership intervals"},
	{"B14", "cursor values that no honest client would send"},
	{"B15", "position and epoch stored as an impossible pair"},
	{"B17", "a removed member keeps hearing the room"},
	{"B19", "between subscribed and the first look"},
	{"B33", "a stampede after a rolling restart"},
	{"B35", "the gap while the listener reconnects"},
	{"B36", "a listener on a dead wire"},
	{"B38", "a notification that aborts the insert"},
	{"B40", "deaf by configuration"},
	{"B67", "an orphaned PostgreSQL after a crash"},
	{"B69", "shutdown waits for the listener"},
	{"B70", "the database drops every session"},
	{"B72", "numbers beyond 2^53"},
	{"B73", "two tabs, one device id, endless fight"},
	{"B75", "an origin that only looks right"},
	{"B76", "a small frame that becomes huge"},
}

const pendingFile = "testdata/cases-pending.txt"

func TestCases(t *testing.T) {
	var ids []string
	for _, c := range cases {
		ids = append(ids, c.id)
	}
	for _, problem := range checkCases(loadTree(t, os.DirFS(".")), ids) {
		t.Error(problem)
	}
}

var (
	caseTest = regexp.MustCompile(`^Test(B\d\d)_`)
	partForm = regexp.MustCompile(`^(path [\w./-]+|frame [a-z]+|command [a-z]+|call [A-Z]+ /[\w/{}.-]+)$`)
)

func checkCases(tree *goTree, ids []string) (problems []string) {
	have, known := map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		known[strings.TrimPrefix(id, "~")] = true
	}
	for _, f := range tree.files {
		for _, d := range f.ast.Decls {
			if fun, ok := d.(*ast.FuncDecl); ok && f.test && fun.Recv == nil {
				if m := caseTest.FindStringSubmatch(fun.Name.Name); m != nil {
					have[m[1]] = true
					if !known[m[1]] {
						problems = append(problems, f.name+": "+fun.Name.Name+" is a case that cases_test.go does not list")
					}
				}
			}
		}
	}
	for _, id := range ids {
		if !have[id] && id[0] != '~' {
			problems = append(problems, "case "+id+" has no test named Test"+id+"_…")
		}
	}
	list, err := fs.ReadFile(tree.fsys, pendingFile)
	if err != nil {
		return append(problems, err.Error())
	}
	n := 0
	for line := range strings.Lines(string(list)) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		add := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("%s:%d: %s", pendingFile, n, fmt.Sprintf(format, args...)))
		}
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) != 3 || cells[1] == "" || !partForm.MatchString(cells[2]):
			add("want `case | input | part`, a part being `path DIR`, `frame NAME`, `command NAME` or `call METHOD /path`")
		case !known[cells[0]]:
			add("%s is no case of cases_test.go", cells[0])
		case partExists(tree, cells[2]):
			add("%q is built: move the input %q into Test%s_…", cells[2], cells[1], cells[0])
		}
	}
	return problems
}

func TestCasesChecker(t *testing.T) {
	sound := func() fstest.MapFS {
		return fstest.MapFS{
			"a_test.go":           {Data: []byte("package a\n\nfunc TestB01_Nul() {}\n")},
			"wire/a.go":           {Data: []byte("package wire\n\nfunc f(t string) {\n\tswitch t {\n\tcase \"send\":\n\t}\n}\nvar _ = \"recall\"\n")},
			"internal/api/a.go":   {Data: []byte("package api\n\nvar _ = \"/users\"\n")},
			"cmd/posthorn/a.go":   {Data: []byte("package main\n\ntype cli struct {\n\tB struct{} `cmd:\"\" name:\"serve\"`\n}\n")},
			pendingFile:           {Data: []byte("# case | input | part\n\nB01 | x | frame recall\nB01 | y | path counters\n")},
			"internal/fault/a.go": {Data: []byte("package fault\n")},
		}
	}
	ids := []string{"B01", "~B05"}
	if got := checkCases(loadTree(t, sound()), ids); len(got) != 0 {
		t.Fatalf("the sound house is found faulty: %q", got)
	}
	for name, tc := range map[string]struct{ file, text, want string }{
		"a case without a test":  {"a_test.go", "package a\n\nfunc TestB011() {}\n", "has no test"},
		"a test without a case":  {"b_test.go", "package a\n\nfunc TestB02_Body() {}\n", "does not list"},
		"a frame that is built":  {pendingFile, "B01 | x | frame send\n", "is built"},
		"a call that is built":   {pendingFile, "B01 | x | call POST /users\n", "is built"},
		"a command that is":      {pendingFile, "B01 | x | command serve\n", "is built"},
		"a folder that is there": {pendingFile, "B01 | x | path internal/fault/\n", "is built"},
		"no part":                {pendingFile, "B01 | x\n", "want `case"},
		"no such kind of part":   {pendingFile, "B01 | x | the moon\n", "want `case"},
		"no input":               {pendingFile, "B01 | | frame recall\n", "want `case"},
		"no such case":           {pendingFile, "B03 | x | frame recall\n", "is no case"},
	} {
		t.Run(name, func(t *testing.T) {
			house := sound()
			house[tc.file] = &fstest.MapFile{Data: []byte(tc.text)}
			got := checkCases(loadTree(t, house), ids)
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("found %q, want one problem with %q in it", got, tc.want)
			}
		})
	}
}
