package lab

import (
	"fmt"
	"path"
	"strings"
)

// Check is one experiment.
type Check struct {
	Name       string
	Fault      string // what is broken, as the report says it
	Must       string // what must hold
	Invariants []string
	Mechanism  string            // without it the check fails; mutants.go takes it out
	params     map[string]string // settings of a PostgreSQL of its own; nil: the shared one
	run        func(*trial)
}

// group is the first part of the name: runs are named after it.
func (c *Check) group() string {
	g, _, _ := strings.Cut(c.Name, "-")
	return g
}

// Select gives the checks that fit any of the patterns (as of path.Match), in the order of the table; a pattern that fits
// none is a mistake.
func Select(patterns []string) ([]Check, error) {
	all := Checks()
	chosen := make([]bool, len(all))
	for _, p := range patterns {
		found := false
		for i := range all {
			ok, err := path.Match(p, all[i].Name)
			if err != nil {
				return nil, fmt.Errorf("%q is no pattern: %w", p, err)
			}
			found, chosen[i] = found || ok, chosen[i] || ok
		}
		if !found {
			return nil, fmt.Errorf("no check is called %s; `posthorn lab list` shows them", p)
		}
	}
	var out []Check
	for i := range all {
		if chosen[i] {
			out = append(out, all[i])
		}
	}
	return out, nil
}
