package gateway

import "testing"

// TestQueue_AckedMerges: the largest wins in whatever order flushes answer, and a reader that takes none costs a bounded
// number.
func TestQueue_AckedMerges(t *testing.T) {
	var q queue
	q.init(3, 1000)
	if !q.answered("c", 7) || q.answered("c", 5) {
		t.Error("listed other than once")
	}
	for _, conv := range []string{"d", "e", "f", "g"} {
		q.answered(conv, 1)
	}
	q.answered("c", 8)
	q.answered("c", 6)
	var b batch
	if q.take(&b) {
		t.Error("acked frames do not wait for a push")
	}
	q.flushAcked()
	if !q.take(&b) || len(b.acked) != 3 || b.acked["c"] != 8 {
		t.Errorf("got %v", b.acked)
	}
	if !q.answered("c", 9) {
		t.Error("not listed again")
	}
}
