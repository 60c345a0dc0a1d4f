package bell

import (
	"fmt"
	"testing"
)

// What may be lost never takes the place of a bell, however much of it waits.
func TestNotifierBoundsEachChannel(t *testing.T) {
	n := NewNotifier(nil, nil)
	for i := range 2 * maxWaiting {
		n.Ring("soft", fmt.Sprint(i))
	}
	n.Ring("im_events", "c:1")
	n.Ring("im_events", "c:1")
	if len(n.waiting["soft"]) != maxWaiting || len(n.waiting["im_events"]) != 1 {
		t.Fatalf("%d and %d wait", len(n.waiting["soft"]), len(n.waiting["im_events"]))
	}
	n.Stop()
}
