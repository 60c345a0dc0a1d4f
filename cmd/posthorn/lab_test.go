package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/internal/lab"
)

// TestLabCommand: what `posthorn lab` says without running anything. Real runs are tested in internal/lab.
func TestLabCommand(t *testing.T) {
	lists := func(out string) bool {
		for _, c := range lab.Checks() {
			if !strings.Contains(out, c.Name) || !strings.Contains(out, c.Must) {
				t.Errorf("%s is missing", c.Name)
			}
		}
		return true
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		says func(out string) bool
	}{
		"list":               {[]string{"lab", "list"}, 0, lists},
		"help hides devices": {[]string{"lab", "--help"}, 0, func(out string) bool { return strings.Contains(out, "lab run") && !strings.Contains(out, "lab client") }},
		"unknown check":      {[]string{"lab", "run", "99-nothing"}, 1, func(out string) bool { return strings.Contains(out, "no check is called 99-nothing") }},
		"no check":           {[]string{"lab", "run"}, 2, func(string) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(tc.args, &out, &out); code != tc.code || !tc.says(out.String()) {
				t.Errorf("exit status %d, want %d; it said:\n%s", code, tc.code, out.String())
			}
		})
	}
}
