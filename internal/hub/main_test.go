package hub

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Some races of the model come up once in thousands of scripts, which are quick; nightly runs make more of them.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given && !testing.Short() {
		_ = flag.Set("rapid.checks", "1000")
	}
	goleak.VerifyTestMain(m)
}
