package lab

import (
	"fmt"
	"slices"
	"time"
)

// validator judges a history together with the tables as they were read at its end. What it finds is said in sentences; an
// empty list means that the invariant held. Each is itself tested with histories that break it (validate_test.go).
type validator struct {
	name  string // of the invariant
	judge func(h []Record, t *Tables) []string
}

// problems collects what a validator finds.
type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// lineage is what one device went through, in the order of its own lines: all of its processes and connections.
type lineage struct {
	device, user string
	lines        []Record
}

// devices sorts a history's lines by device, each device's in their order.
func devices(h []Record) (all []*lineage) {
	by := map[string]*lineage{}
	for _, r := range h {
		if r.user() == "" {
			continue
		}
		d := r.device()
		if by[d] == nil {
			by[d] = &lineage{device: d, user: r.user()}
			all = append(all, by[d])
		}
		by[d].lines = append(by[d].lines, r)
	}
	return all
}

// seqs is a set of events of one conversation.
type seqs map[int64]bool

func (s seqs) missing(want []int64) (lack []int64) {
	for _, seq := range want {
		if !s[seq] {
			lack = append(lack, seq)
		}
	}
	return lack
}

// convsOf lists the conversations that lines speak of.
func convsOf(lines []Record) (all []string) {
	for _, r := range lines {
		if r.Conv != "" && !slices.Contains(all, r.Conv) {
			all = append(all, r.Conv)
		}
	}
	return all
}

// startOf is a device's start mark in a conversation: nothing at or below it was ever asked for.
func startOf(t *Tables, device, conv string) int64 {
	if p := t.place(device, conv); p != nil {
		return p.Start
	}
	return 0
}

// ms is a duration as the sentences say it.
func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
