package posthorn_test

import (
	"flag"
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/posthorn/posthorn"
)

var update = flag.Bool("update", false, "write the generated documents anew")

// TestGeneratedDocs holds the generated documents to the code; `go test -run TestGeneratedDocs -update .` renews them.
func TestGeneratedDocs(t *testing.T) {
	for name, want := range map[string]string{
		"docs/limits.md":        limitsDoc(posthorn.DefaultLimits().LimitTable()),
		"docs/authorization.md": authorizationDoc(posthorn.Rules()),
	} {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		} else if string(got) != want {
			t.Errorf("%s is stale: run `go test -run TestGeneratedDocs -update .`", name)
		}
	}
}

const generated = "<!-- Generated from %s by `go test -run TestGeneratedDocs -update .`; do not edit. -->\n\n"

func limitsDoc(table []posthorn.Limit) string {
	var b strings.Builder
	b.WriteString("# Limits and defaults\n\n")
	fmt.Fprintf(&b, generated, "limits.go")
	b.WriteString("Everything that can grow has a bound, in items and in bytes where both can, and what happens there is decided\n" +
		"beforehand (B1). Sizes are binary: 1 KiB is 1,024 bytes.\n\n")
	b.WriteString("| name | default | at the bound |\n|---|---|---|\n")
	for _, l := range table {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.Name, l.Value, l.AtBound)
	}
	return b.String()
}

func authorizationDoc(rules []posthorn.Rule) string {
	all := []posthorn.Role{posthorn.RoleOwner, posthorn.RoleAdmin, posthorn.RoleMember}
	var b strings.Builder
	b.WriteString("# Who may do what\n\n")
	fmt.Fprintf(&b, generated, "authorize.go")
	b.WriteString("Somebody who is no member gets `NOT_MEMBER` before this table is asked, whether the conversation exists or not. A\n" +
		"request that was carried out before is answered as a duplicate before anything is judged (D2). A server key is not asked:\n" +
		"its scopes decide, see [protocol.md](protocol.md). Reading is decided by periods of membership alone (V1).\n\n")
	b.WriteString("| kind | act |")
	for _, r := range all {
		fmt.Fprintf(&b, " %s |", r)
	}
	b.WriteString(" others get |\n|---|---|" + strings.Repeat("---|", len(all)+1) + "\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "| `%s` | `%s` |", r.Kind, r.Act)
		for _, role := range all {
			mark := "–"
			if posthorn.Allowed(r.Kind, r.Act, role) {
				mark = "yes"
			}
			fmt.Fprintf(&b, " %s |", mark)
		}
		fmt.Fprintf(&b, " `%s` |\n", r.Code)
	}
	b.WriteString("\nThe owner may leave, and is removed by nobody but a server key. A direct conversation keeps its two people, whoever asks.\n")
	b.WriteString("\nThe acts: `send` a message; `add` members; `remove` other members; `leave`; `members`, see the list of members; `meta`,\n" +
		"change the title.\n")
	return b.String()
}

// TestInvariantTable: ARCHITECTURE.md and invariants.go say the same, in the same order.
func TestInvariantTable(t *testing.T) {
	var want [][]string
	for _, i := range posthorn.Invariants() {
		want = append(want, []string{i.Name, i.Promise, i.Watched})
	}
	got := tableUnder(readFile(t, "ARCHITECTURE.md"), "Invariants")
	for _, row := range got {
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "`", "")
		}
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("ARCHITECTURE.md and invariants.go differ:\n%q\n%q", got, want)
	}
}

// TestStatusTable: what docs/protocol.md calls built is in the code, and what it calls not built is not.
func TestStatusTable(t *testing.T) {
	tree := loadTree(t, os.DirFS("."))
	for _, problem := range checkStatus(tree, readFile(t, "docs/protocol.md")) {
		t.Error(problem)
	}
}

func TestStatusTableChecker(t *testing.T) {
	tree := loadTree(t, fstest.MapFS{
		"wire/frames.go": {Data: []byte("package wire\nfunc f(t string) {\n\tswitch t {\n\tcase \"send\", \"read\":\n\t}\n}\nvar _ = \"ack\"\n")},
		"internal/api/api.go": {Data: []byte("package api\nvar _ = []route{{method: http.MethodPost, path: \"/users\"}, {method: http.MethodGet, path: \"/keys\"}}\n" +
			"var _ = \"/healthz\"\n")},
		"cmd/posthorn/cli.go": {Data: []byte("package main\ntype cli struct {\n\tServe struct{} `cmd:\"\"`\n\tX struct{} `cmd:\"\" name:\"lab\"`\n}\n")},
	})
	doc := "## Status\n\n| | built | not built |\n|---|---|---|\n" +
		"| frames to the server | `send`, `ack` | `read` |\n" +
		"| HTTP calls | `POST /users`, `/healthz` (with `--dev`), `POST /tokens`, `GET /users` | every other |\n" +
		"| commands | `serve`, `tail` | |\n"
	got := checkStatus(tree, doc)
	slices.Sort(got)
	want := []string{"not say built: call GET /keys", "not say built: command lab", "says built: call GET /users", "says built: call POST /tokens",
		"says built: command tail", "says built: frame ack", "says not built: frame read"}
	if !slices.EqualFunc(got, want, strings.Contains) {
		t.Errorf("found %q, want one for each of %q", got, want)
	}
}

func checkStatus(tree *goTree, doc string) (problems []string) {
	rows := tableUnder(doc, "Status")
	if len(rows) == 0 {
		return []string{"no table under Status"}
	}
	said := map[string]bool{} // what is called built
	for _, row := range rows {
		var kind string
		switch {
		case strings.HasPrefix(row[0], "frames"):
			kind = "frame"
		case row[0] == "HTTP calls":
			kind = "call"
		case row[0] == "commands":
			kind = "command"
		default:
			problems = append(problems, "Status: unknown row "+row[0])
			continue
		}
		for i, say := range []string{"built", "not built"} {
			for _, name := range ticked(row[i+1]) {
				if kind == "call" && !strings.Contains(name, "/") {
					continue // a flag that the call needs
				}
				part := kind + " " + name
				if i == 0 {
					said[part] = true
				}
				if partExists(tree, part) != (i == 0) {
					problems = append(problems, fmt.Sprintf("docs/protocol.md says %s: %s, the code says otherwise", say, part))
				}
			}
		}
	}
	for kind, names := range map[string][]string{"call": calls(tree), "command": commands(tree)} {
		for _, name := range names {
			if !said[kind+" "+name] {
				problems = append(problems, fmt.Sprintf("docs/protocol.md does not say built: %s %s", kind, name))
			}
		}
	}
	return problems
}

// partExists tells whether something that a document or the list of pending cases names has been built: `path DIR`,
// `frame NAME`, `call METHOD /path` or `command NAME`. It looks at the source, so that it needs nothing to run.
func partExists(tree *goTree, part string) bool {
	kind, name, _ := strings.Cut(part, " ")
	switch kind {
	case "path":
		return exists(tree.fsys, strings.TrimSuffix(name, "/"))
	case "frame": // decoders tell frames apart by a switch
		return tree.inspect("wire", func(n ast.Node) bool {
			c, ok := n.(*ast.CaseClause)
			return ok && slices.ContainsFunc(c.List, func(e ast.Expr) bool { return isString(e, name) })
		})
	case "call":
		return slices.Contains(calls(tree), name) ||
			tree.inspect("internal/api", func(n ast.Node) bool { return isString(n, name[strings.Index(name, "/"):]) }) &&
				!slices.ContainsFunc(calls(tree), func(c string) bool { return strings.HasSuffix(c, " "+name[strings.Index(name, "/"):]) })
	case "command":
		return slices.Contains(commands(tree), name)
	}
	return false
}

// calls lists the routes of the HTTP calls: structures with a method (http.MethodPost) and a path.
func calls(tree *goTree) (out []string) {
	tree.inspect("internal/api", func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return false
		}
		var method, path string
		for _, e := range lit.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch v := kv.Value.(type) {
			case *ast.SelectorExpr:
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "method" {
					method = strings.ToUpper(strings.TrimPrefix(v.Sel.Name, "Method"))
				}
			case *ast.BasicLit:
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "path" {
					path, _ = strconv.Unquote(v.Value)
				}
			}
		}
		if method != "" && path != "" {
			out = append(out, method+" "+path)
		}
		return false
	})
	return out
}

// commands lists the fields of the command line's structure, cli, that are tagged cmd.
func commands(tree *goTree) (out []string) {
	tree.inspect("cmd/posthorn", func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "cli" {
			return false
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, field := range fields.Fields.List {
			if field.Tag == nil || len(field.Names) != 1 || !strings.Contains(field.Tag.Value, `cmd:"`) {
				continue
			}
			if m := kongName.FindStringSubmatch(field.Tag.Value); m != nil {
				out = append(out, m[1])
			} else {
				out = append(out, strings.ToLower(field.Names[0].Name))
			}
		}
		return false
	})
	return out
}

var kongName = regexp.MustCompile(`\bname:"([^"]*)"`)

// tableUnder gives the body rows of the first table below a heading of this name, cells trimmed.
func tableUnder(doc, heading string) (rows [][]string) {
	in, seen := false, 0
	for line := range strings.Lines(doc) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			if seen > 0 {
				return rows
			}
			in = strings.TrimSpace(strings.TrimLeft(line, "#")) == heading
		case in && strings.HasPrefix(line, "|"):
			if seen++; seen > 2 {
				cells := strings.Split(strings.Trim(line, "|"), "|")
				for i := range cells {
					cells[i] = strings.TrimSpace(cells[i])
				}
				rows = append(rows, cells)
			}
		case seen > 0:
			return rows
		}
	}
	return rows
}

var tick = regexp.MustCompile("`([^`]+)`")

// ticked lists what stands in back-ticks.
func ticked(s string) (out []string) {
	for _, m := range tick.FindAllStringSubmatch(s, -1) {
		out = append(out, m[1])
	}
	return out
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
