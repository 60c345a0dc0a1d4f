package main

import (
	"strings"
	"testing"
)

func TestOrderAndMessageCommitTogether(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"order 1, a post horn: rolled back (the card was refused)\n",
		"order 2, a saddle: committed\n",
		"bo was pushed: \"Ordered: a saddle\" with {\"order\":2}\n",
		"in the database: 1 order, 1 message\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("missing %q in\n%s", want, out.String())
		}
	}
}
