package posthorn_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// The rules of the house stand in ARCHITECTURE.md, in the table "Rooms"; this file reads them there and holds every Go
// file to them. Nothing is listed twice.

const module = "github.com/posthorn/posthorn"

func TestArchitecture(t *testing.T) {
	for _, problem := range checkHouse(loadTree(t, os.DirFS(".")), readFile(t, "ARCHITECTURE.md")) {
		t.Error(problem)
	}
}

// room is one line of the table.
type room struct {
	dir        string // "." for the root, testRow for the line about tests
	rooms      []string
	everything bool     // rooms lists what is not allowed
	modules    []string // of others
	never      []string // packages of the standard library
	sql        bool
}

const testRow = "_test.go"

func checkHouse(tree *goTree, doc string) (problems []string) {
	rooms := parseRooms(doc)
	if len(rooms) < 2 {
		return []string{"ARCHITECTURE.md: no table of rooms"}
	}
	problems = append(problems, checkPlaces(tree, rooms, doc)...)
	for _, f := range tree.files {
		r := roomOf(rooms, f.dir)
		if r == nil {
			continue // checkPlaces has said so
		}
		problems = append(problems, checkImports(rooms, *r, f)...)
		if !r.sql && !f.test {
			problems = append(problems, checkSQL(f)...)
		}
	}
	return append(problems, checkDocs(tree)...)
}

func parseRooms(doc string) (rooms []room) {
	for _, row := range tableUnder(doc, "Rooms") {
		if len(row) != 4 || len(ticked(row[0])) == 0 {
			continue
		}
		others, never, _ := strings.Cut(row[3], "never")
		r := room{
			dir:        asDir(ticked(row[0])[0]),
			rooms:      ticked(row[2]),
			everything: strings.HasPrefix(row[2], "everything"),
			modules:    ticked(others),
			never:      ticked(never),
			sql:        strings.Contains(row[3], "speaks SQL"),
		}
		for i := range r.rooms {
			r.rooms[i] = asDir(r.rooms[i])
		}
		rooms = append(rooms, r)
	}
	return rooms
}

func asDir(name string) string {
	if name == "posthorn" {
		return "."
	}
	return name
}

// roomOf gives the room that a folder belongs to: the longest one that holds it. The root holds only itself.
func roomOf(rooms []room, dir string) (best *room) {
	for i, r := range rooms {
		if r.dir != testRow && (dir == r.dir || r.dir != "." && within(dir, r.dir)) && (best == nil || len(r.dir) > len(best.dir)) {
			best = &rooms[i]
		}
	}
	return best
}

func within(name, prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+"/") }

// checkPlaces: every folder with Go files is in a room, every room and every path that the page names exists.
func checkPlaces(tree *goTree, rooms []room, doc string) (problems []string) {
	dirs := map[string]bool{}
	for _, f := range tree.files {
		dirs[f.dir] = true
	}
	for dir := range dirs {
		if roomOf(rooms, dir) == nil {
			problems = append(problems, dir+": ARCHITECTURE.md names no such room")
		}
	}
	for _, r := range rooms {
		if r.dir != testRow && !exists(tree.fsys, r.dir) {
			problems = append(problems, "ARCHITECTURE.md names the room "+r.dir+", which does not exist")
		}
	}
	for line := range strings.Lines(doc) {
		if strings.HasPrefix(line, "|") {
			line = line[:strings.LastIndex(strings.TrimRight(line, "| \n"), "|")+1] // the last column names packages of others
		}
		for _, name := range ticked(line) {
			if looksLikePath(name) && !exists(tree.fsys, strings.TrimSuffix(name, "/")) {
				problems = append(problems, "ARCHITECTURE.md names "+name+", which does not exist")
			}
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

var pathForm = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.*/-]*(/[A-Za-z0-9_.*-]+|\.(go|md|sql|sh|txt))$`)

// looksLikePath leaves out what is absent on purpose, which ends in a slash.
func looksLikePath(name string) bool {
	return pathForm.MatchString(name) && !strings.HasPrefix(name, "github.com/") && name != testRow
}

func exists(fsys fs.FS, name string) bool {
	found, err := fs.Glob(fsys, name)
	return err == nil && len(found) > 0
}

func checkImports(rooms []room, r room, f goFile) (problems []string) {
	for _, spec := range f.ast.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		why := ""
		switch {
		case name == module || strings.HasPrefix(name, module+"/"):
			why = oursRefused(rooms, r, f, strings.TrimPrefix(strings.TrimPrefix(name, module), "/"))
		case strings.Contains(strings.Split(name, "/")[0], "."):
			if !slices.ContainsFunc(allowedModules(rooms, r, f.test), func(m string) bool { return within(name, m) }) {
				why = "is not among the modules of its room"
			}
		case !f.test && slices.Contains(r.never, name):
			why = "is kept away from its room"
		case !f.test && name == "testing" && r.dir != "internal/pgtest":
			why = "belongs into tests"
		}
		if why != "" {
			problems = append(problems, fmt.Sprintf("%s imports %s, which %s (ARCHITECTURE.md, Rooms)", f.name, name, why))
		}
	}
	return problems
}

// oursRefused says why a room may not import one of ours. A room may always import its own parts.
func oursRefused(rooms []room, r room, f goFile, dir string) string {
	if dir == "" {
		dir = "."
	}
	to := roomOf(rooms, dir)
	switch {
	case to == nil:
		return "is in no room"
	case to.dir == r.dir:
		return ""
	case f.test:
		return ""
	case slices.Contains(r.rooms, to.dir) == r.everything:
		return "its room may not import"
	}
	return ""
}

func allowedModules(rooms []room, r room, test bool) []string {
	if !test {
		return r.modules
	}
	var all []string
	for _, x := range rooms {
		all = append(all, x.modules...)
	}
	return all
}

// SQL in a string: upper-case as we write keywords in Go, or lower-case in a form that English does not have.
var (
	sqlUpper = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|LISTEN|UNLISTEN|NOTIFY|TRUNCATE|COPY|GRANT|REVOKE|VACUUM|SET LOCAL)\s`)
	sqlLower = regexp.MustCompile(`(?is)^\s*(select\s.+\sfrom\s|select\s+([\w.]+\s*\(|\d|\*)|insert\s+into\s|update\s+[\w.]+\s+(\w+\s+)?set\s|delete\s+from\s+[\w.]+(\s+where\s|\s*$)|` +
		`with\s+(recursive\s+)?\w+\s+as\s*\(|(create|alter|drop)\s+(or\s+replace\s+)?(unlogged\s+)?(unique\s+)?(table|index|view|function|schema|role|database|trigger|type|sequence|extension)\s)`)
)

func checkSQL(f goFile) (problems []string) {
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				tags[n.Tag] = true // texts for the command line
			}
		case *ast.BasicLit:
			if n.Kind != token.STRING || tags[n] {
				return true
			}
			if s, err := strconv.Unquote(n.Value); err == nil && (sqlUpper.MatchString(s) || sqlLower.MatchString(s)) {
				problems = append(problems, fmt.Sprintf("%s:%d holds SQL, which its room does not speak (ARCHITECTURE.md, Rooms)", f.name, f.line(n)))
			}
		}
		return true
	})
	return problems
}

// checkDocs: each package says what it is, and who owns its goroutines.
func checkDocs(tree *goTree) (problems []string) {
	docs := map[string]string{}
	for _, f := range tree.files {
		if !f.test {
			docs[f.dir] += f.ast.Doc.Text()
		}
	}
	for dir, doc := range docs {
		switch {
		case doc == "":
			problems = append(problems, dir+": the package has no doc comment")
		case !strings.Contains(strings.ToLower(doc), "goroutine"):
			problems = append(problems, dir+": the package's doc comment does not say who owns its goroutines, or that it starts none")
		}
	}
	slices.Sort(problems)
	return problems
}

// goTree is every Go file of the repository, parsed.
type goTree struct {
	fsys  fs.FS
	files []goFile
}

type goFile struct {
	name, dir string
	test      bool
	src       string
	ast       *ast.File
	fset      *token.FileSet
}

func (f goFile) line(n ast.Node) int { return f.fset.Position(n.Pos()).Line }

func loadTree(t *testing.T, fsys fs.FS) *goTree {
	t.Helper()
	tree := &goTree{fsys: fsys}
	err := walkHouse(fsys, func(name string) error {
		if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		f := goFile{name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), src: string(src), fset: token.NewFileSet()}
		f.ast, err = parser.ParseFile(f.fset, name, src, parser.ParseComments)
		tree.files = append(tree.files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// walkHouse visits every file that belongs to the repository: what running and building leave behind does not (see
// .gitignore).
func walkHouse(fsys fs.FS, visit func(name string) error) error {
	leftovers := []string{".git", ".idea", ".vscode", ".pg", "bin", "posthorn-data", "evidence", "coverage", "node_modules", "rapid"}
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(leftovers, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular():
			return visit(name)
		}
		return nil
	})
}

// inspect shows every node of a room's own code, tests aside, until yes says that it has seen enough.
func (g *goTree) inspect(dir string, yes func(ast.Node) bool) (found bool) {
	for _, f := range g.files {
		if f.test || !within(f.dir, dir) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			found = found || n != nil && yes(n)
			return !found
		})
	}
	return found
}

// isString tells whether a node is the literal of one of these strings.
func isString(n ast.Node, want ...string) bool {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return false
	}
	s, err := strconv.Unquote(lit.Value)
	return err == nil && slices.Contains(want, s)
}

const toyPage = "# Page\n\nSee `docs/a.md`.\n\n## Rooms\n\n| place | lives here | ours | others |\n|---|---|---|---|\n" +
	"| `posthorn` | nouns | nothing | nothing; never `net` |\n" +
	"| `internal/hub` | | `posthorn` | nothing |\n" +
	"| `internal/store` | | `posthorn` | `github.com/jackc/pgx/v5`; speaks SQL |\n" +
	"| `internal/pgtest` | | `internal/store` | nothing |\n" +
	"| `cmd/posthorn` | | everything but `internal/pgtest` | nothing |\n" +
	"| `_test.go` | | everything | `go.uber.org/goleak` |\n"

func toyHouse() fstest.MapFS {
	doc := "// Package x starts no goroutine.\n"
	house := fstest.MapFS{"docs/a.md": {Data: []byte("# A\n")}}
	for name, code := range map[string]string{
		"doc.go":                     "package posthorn\n",
		"internal/hub/hub.go":        "package hub\n\nimport _ \"github.com/posthorn/posthorn\"\n",
		"internal/hub/hub_test.go":   "package hub\n\nimport (\n_ \"go.uber.org/goleak\"\n_ \"github.com/posthorn/posthorn/internal/pgtest\"\n_ \"github.com/jackc/pgx/v5/pgxpool\"\n)\n\nconst q = \"SELECT 1 \"\n",
		"internal/store/sub/sub.go":  "package sub\n\nimport _ \"github.com/posthorn/posthorn/internal/store\"\n\nconst q = \"SELECT seq FROM events\"\n",
		"internal/store/store.go":    "package store\n\nimport _ \"github.com/jackc/pgx/v5/pgxpool\"\n",
		"internal/pgtest/pgtest.go":  "package pgtest\n\nimport _ \"testing\"\n",
		"cmd/posthorn/main.go":       "package main\n\nimport _ \"github.com/posthorn/posthorn/internal/store\"\n\ntype cli struct {\n\tUser struct{} `cmd:\"\" help:\"CREATE users\"`\n}\n\nconst help = \"create a table of users, or delete from them\"\n",
		"internal/hub/testdata/x.go": "package broken {{{\n",
	} {
		house[name] = &fstest.MapFile{Data: []byte(doc + code)}
	}
	return house
}

// TestArchitectureChecker feeds the checker one violation at a time: a rule that cannot fail proves nothing.
func TestArchitectureChecker(t *testing.T) {
	if got := checkHouse(loadTree(t, toyHouse()), toyPage); len(got) != 0 {
		t.Fatalf("the sound house is found faulty: %q", got)
	}
	doc := "// Package x starts no goroutine.\npackage x\n\n"
	for name, tc := range map[string]struct{ file, code, page, want string }{
		"rooms that never meet":    {"internal/hub/a.go", doc + "import _ \"github.com/posthorn/posthorn/internal/store\"\n", "", "its room may not import"},
		"arrow turned round":       {"a.go", doc + "import _ \"github.com/posthorn/posthorn/internal/hub\"\n", "", "its room may not import"},
		"the excepted room":        {"cmd/posthorn/a.go", doc + "import _ \"github.com/posthorn/posthorn/internal/pgtest\"\n", "", "its room may not import"},
		"a module of others":       {"internal/hub/a.go", doc + "import _ \"github.com/jackc/pgx/v5\"\n", "", "not among the modules"},
		"a module like another":    {"internal/store/a.go", doc + "import _ \"github.com/jackc/pgx/v55\"\n", "", "not among the modules"},
		"a module in a test":       {"internal/hub/a_test.go", doc + "import _ \"github.com/stretchr/testify\"\n", "", "not among the modules"},
		"a test module in code":    {"internal/hub/a.go", doc + "import _ \"go.uber.org/goleak\"\n", "", "not among the modules"},
		"network where none is":    {"a.go", doc + "import _ \"net\"\n", "", "kept away"},
		"testing in code":          {"internal/hub/a.go", doc + "import _ \"testing\"\n", "", "belongs into tests"},
		"SQL in capitals":          {"internal/hub/a.go", doc + "const q = `\n  INSERT INTO t VALUES (1)`\n", "", "holds SQL"},
		"SQL in small letters":     {"internal/hub/a.go", doc + "const q = \"update posthorn.events set body = null\"\n", "", "holds SQL"},
		"SQL, LISTEN":              {"cmd/posthorn/a.go", doc + "const q = \"LISTEN \" + \"x\"\n", "", "holds SQL"},
		"SQL, a call":              {"cmd/posthorn/a.go", doc + "const q = \"select posthorn.send($1)\"\n", "", "holds SQL"},
		"a room without a line":    {"internal/util/a.go", doc, "", "names no such room"},
		"a package without a doc":  {"internal/store/new/a.go", "package x\n", "", "no doc comment"},
		"goroutines without owner": {"internal/store/new/a.go", "// Package x is.\npackage x\n", "", "who owns its goroutines"},
		"a path that is gone":      {"", "", strings.Replace(toyPage, "docs/a.md", "docs/b.md", 1), "docs/b.md, which does not exist"},
		"a file that is gone":      {"", "", strings.Replace(toyPage, "nouns", "nouns, `ports.go`", 1), "ports.go, which does not exist"},
		"a room that is gone":      {"", "", toyPage + "| `web` | | | |\n", "the room web, which does not exist"},
		"no table":                 {"", "", "# Page\n", "no table of rooms"},
	} {
		t.Run(name, func(t *testing.T) {
			house, page := toyHouse(), toyPage
			if tc.file != "" {
				house[tc.file] = &fstest.MapFile{Data: []byte(tc.code)}
			}
			if tc.page != "" {
				page = tc.page
			}
			got := checkHouse(loadTree(t, house), page)
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("found %q, want one problem with %q in it", got, tc.want)
			}
		})
	}
}
