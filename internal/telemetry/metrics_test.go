package telemetry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHandler(t *testing.T) {
	n := 0.0
	h := Handler(func() []Reading {
		n++
		return []Reading{
			{Name: "sent_total", Help: "Messages.", Kind: Count, Value: n},
			{Name: "ready", Help: "Conditions.", Value: 1, Label: "condition", Of: "tail"},
			{Name: "ready", Help: "Conditions.", Value: 0, Label: "condition", Of: `odd "name"`},
		}
	})
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, line := range []string{"# TYPE posthorn_sent_total counter", `posthorn_ready{condition="tail"} 1`, `posthorn_ready{condition="odd \"name\""} 0`, "go_goroutines"} {
			if w.Code != 200 || !strings.Contains(w.Body.String(), line) {
				t.Fatalf("%d, without %q:\n%s", w.Code, line, w.Body)
			}
		}
	}
	if n != 2 {
		t.Fatalf("read %v times", n)
	}
}
