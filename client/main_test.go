package client

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the door of the helper process that crash tests kill.
func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		helper()
		return
	}
	goleak.VerifyTestMain(m)
}
