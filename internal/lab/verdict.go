package lab

import (
	"fmt"
	"strings"
)

// expect compares, and keeps both sides for the verdict.
func expect[T comparable](t *trial, what string, want, got T) {
	t.expected = append(t.expected, fmt.Sprintf("%s %v", what, want))
	t.observed = append(t.observed, fmt.Sprintf("%s %v", what, got))
	t.failed = t.failed || want != got
}

// expectThat is expect for what is no single value.
func (t *trial) expectThat(ok bool, want, got string) {
	t.expected = append(t.expected, want)
	t.observed = append(t.observed, got)
	t.failed = t.failed || !ok
}

// judge holds the history and the tables to invariants.
func (t *trial) judge(validators ...validator) {
	t.until("the cursors to be sampled", func() (bool, error) { // the newest positions too
		err := t.smp.sample(t.ctx)
		return err == nil, err
	})
	tables := t.tables()
	records := t.hist.Records()
	var names, broken []string
	for _, v := range validators {
		names = append(names, v.name)
		if found := v.judge(records, tables); len(found) > 0 {
			broken = append(broken, v.name+" broken: "+shorten(found))
		}
	}
	held := strings.Join(names, " ") + " hold"
	if len(broken) > 0 {
		t.expectThat(false, held, strings.Join(broken, "; "))
		return
	}
	t.expectThat(true, held, held)
}

// shorten keeps a verdict readable; the history has the rest.
func shorten(found []string) string {
	const shown = 4
	if more := len(found) - shown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(found[:shown], ", "), more)
	}
	return strings.Join(found, ", ")
}
