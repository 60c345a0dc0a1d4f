package posthorn_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestTidy holds every file of the repository to the small rules of the house.
func TestTidy(t *testing.T) {
	for _, problem := range checkTidy(loadTree(t, os.DirFS("."))) {
		t.Error(problem)
	}
}

const maxLines = 700

// The words are put together here, so that this file is held to its own rules.
var (
	unfinished   = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b|(?i:not implem` + `ented)`)
	machinePaths = regexp.MustCompile(`(^|[^\w.-])/(wo` + `rk|ro` + `ot|ho` + `me/\w+)/`)
	registries   = regexp.MustCompile(`\b(proxy\.gol` + `ang\.org|sum\.gol` + `ang\.org|registry\.npm` + `js\.org|deb\.deb` + `ian\.org|security\.deb` + `ian\.org)\b`)
	mdLink       = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)
)

func checkTidy(tree *goTree) (problems []string) {
	add := func(name string, line int, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s:%d: %s", name, line, fmt.Sprintf(format, args...)))
	}
	err := walkHouse(tree.fsys, func(name string) error {
		text, err := fs.ReadFile(tree.fsys, name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return err // a picture or the like
		}
		base := path.Base(name)
		if slices.Contains([]string{"LICENSE", "go.sum", "go.mod"}, base) || within(path.Dir(name), "testdata/fuzz") {
			return nil
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			if m := unfinished.FindString(line); m != "" {
				add(name, n, "%q: finish it, or open an issue", m)
			}
			if m := machinePaths.FindString(line); m != "" {
				add(name, n, "%q is a path of somebody's machine", strings.TrimSpace(m))
			}
			if m := registries.FindString(line); m != "" {
				add(name, n, "%q: the ordinary client knows where its registry is", m)
			}
		}
		if n > maxLines && !slices.Contains([]string{".json", ".txt"}, path.Ext(name)) {
			add(name, n, "longer than %d lines", maxLines)
		}
		if path.Ext(name) == ".md" {
			for _, m := range mdLink.FindAllStringSubmatch(string(text), -1) {
				if !strings.Contains(m[1], ":") && !exists(tree.fsys, path.Join(path.Dir(name), m[1])) {
					add(name, 1, "the link %s leads nowhere", m[1])
				}
			}
		}
		return nil
	})
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, f := range tree.files {
		if f.test {
			checkSleeps(f, add)
		}
	}
	log, err := fs.ReadFile(tree.fsys, "CHANGELOG.md")
	if err != nil || !strings.Contains(string(log), "\n## Unreleased\n") {
		problems = append(problems, "CHANGELOG.md has no section \"## Unreleased\"")
	}
	return problems
}

// checkSleeps: a test waits for a signal, or runs on fake time. A sleep has its reason beside it or in the line above.
func checkSleeps(f goFile, add func(string, int, string, ...any)) {
	lines := strings.Split(f.src, "\n")
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if fun, ok := call.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "Sleep" {
			if pkg, ok := fun.X.(*ast.Ident); ok && pkg.Name == "time" {
				at := f.line(n)
				explained := func(line string) bool {
					_, reason, _ := strings.Cut(line, "// sleep:")
					return strings.TrimSpace(reason) != ""
				}
				if !slices.ContainsFunc(lines[max(at-2, 0):at], explained) {
					add(f.name, at, "time.Sleep in a test without a reason (// sleep: …)")
				}
			}
		}
		return true
	})
}

func TestTidyChecker(t *testing.T) {
	sound := func() fstest.MapFS {
		return fstest.MapFS{
			"CHANGELOG.md": {Data: []byte("# Changelog\n\n## Unreleased\n\n* see [a](docs/a.md#top) and [b](https://example.org/)\n")},
			"docs/a.md":    {Data: []byte("[back](../CHANGELOG.md)\n")},
			"a_test.go":    {Data: []byte("package a\n\nimport \"time\"\n\nfunc f() {\n\ttime.Sleep(1) // sleep: fake time\n\t// sleep: fake time\n\ttime.Sleep(1)\n}\n")},
			"bin/x.go":     {Data: []byte("FIX" + "ME")},
		}
	}
	if got := checkTidy(loadTree(t, sound())); len(got) != 0 {
		t.Fatalf("the sound house is found faulty: %q", got)
	}
	for name, tc := range map[string]struct{ file, text, want string }{
		"unfinished":        {"a.sql", "-- TO" + "DO: later\n", "finish it"},
		"not there":         {"a.md", "This is Not Implem" + "ented.\n", "finish it"},
		"machine path":      {"a.sh", "cd /wo" + "rk/main\n", "somebody's machine"},
		"registry":          {"Makefile", "GOPROXY=https://proxy.gol" + "ang.org\n", "registry"},
		"long":              {"a.go", "package a\n" + strings.Repeat("\n", maxLines), "longer than"},
		"dead link":         {"docs/b.md", "[c](c.md)\n", "leads nowhere"},
		"no change log":     {"CHANGELOG.md", "# Changelog\n\n## 1.0\n", "Unreleased"},
		"sleep":             {"b_test.go", "package a\n\nimport \"time\"\n\nfunc f() {\n\ttime.Sleep(1)\n}\n", "without a reason"},
		"sleep, no reason":  {"b_test.go", "package a\n\nimport \"time\"\n\nfunc f() {\n\ttime.Sleep(1) // sleep:\n}\n", "without a reason"},
		"sleep, two above":  {"b_test.go", "package a\n\nimport \"time\"\n\nfunc f() {\n\t// sleep: x\n\n\ttime.Sleep(1)\n}\n", "without a reason"},
		"path in a comment": {"a.go", "package a // see `/ro" + "ot/x`\n", "somebody's machine"},
	} {
		t.Run(name, func(t *testing.T) {
			house := sound()
			house[tc.file] = &fstest.MapFile{Data: []byte(tc.text)}
			got := checkTidy(loadTree(t, house))
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("found %q, want one problem with %q in it", got, tc.want)
			}
		})
	}
}
