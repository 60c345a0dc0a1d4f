// Package telemetry shows what a process counts, in the format that Prometheus reads. The rooms count by themselves and
// know nothing of it: whoever wires them hands over their numbers, which are read when somebody asks.
//
// It has no goroutine and keeps nothing.
package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Kind of a reading.
type Kind int

const (
	// Level goes up and down.
	Level Kind = iota
	// Count only rises, until the process starts anew; its name ends with _total.
	Count
)

// Reading is one number.
type Reading struct {
	Name  string // without the prefix posthorn_
	Help  string
	Kind  Kind
	Value float64
	// Label and its value tell readings of one name apart; "" for none.
	Label, Of string
}

// Handler answers GET /metrics with what read gives, and with what Go and the operating system tell of the process.
func Handler(read func() []Reading) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), readings(read))
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// readings is an unchecked collector: it describes nothing beforehand, since every reading describes itself.
type readings func() []Reading

func (readings) Describe(chan<- *prometheus.Desc) {}

func (r readings) Collect(to chan<- prometheus.Metric) {
	for _, x := range r() {
		var labels prometheus.Labels
		if x.Label != "" {
			labels = prometheus.Labels{x.Label: x.Of}
		}
		kind := prometheus.GaugeValue
		if x.Kind == Count {
			kind = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("posthorn_"+x.Name, x.Help, nil, labels), kind, x.Value)
	}
}
