package lab

import (
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"strings"
	"time"
)

//go:embed report.html
var reportHTML string

var reportTemplate = template.Must(template.New("report").Parse(reportHTML))

// reportPage is what the template shows.
type reportPage struct {
	Run, Written string
	Summary      Summary
	Outcomes     []reportCheck
	Flaky        []Result
}

type reportCheck struct {
	*Outcome
	Must, Invariants, Mechanism string
	Facts                       []fact
	Lanes                       []lane
	Lines                       []line
	Width, Height               int
	Span                        string
}

type fact struct{ Name, Value string }

// lane is one device or process on the timeline, and mark one line of its history there.
type lane struct {
	Who       string
	Y, LabelY int
	Marks     []mark
}

type mark struct {
	X           int
	Class, Text string
}

// line is a record in the list below the timeline.
type line struct{ At, Who, Text, Class string }

const (
	reportWidth = 1000
	laneHeight  = 26
	labelWidth  = 130
	listedLines = 400
)

// writeReport writes one self-contained page for what this run has carried out.
func writeReport(path, run string, outcomes []*Outcome, flaky []Result) error {
	page := reportPage{Run: run, Written: time.Now().UTC().Format(time.RFC1123), Flaky: flaky}
	for _, o := range outcomes {
		page.Summary.count(o)
		page.Outcomes = append(page.Outcomes, reportOf(o))
	}
	var b strings.Builder
	if err := reportTemplate.Execute(&b, page); err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func reportOf(o *Outcome) reportCheck {
	c := reportCheck{Outcome: o, Must: o.check.Must, Invariants: strings.Join(o.check.Invariants, " "), Mechanism: o.check.Mechanism, Width: reportWidth}
	for _, f := range []fact{{"fault", o.Fault}, {"gateway exit", cell(o.GatewayExit)}, {"first reply", cell(o.FirstReply)}, {"rows after crash", cell(o.RowsAfterCrash)},
		{"rows after resend", cell(o.RowsAfterResend)}, {"resend dup", cell(o.ResendDup)}, {"outbox left", cell(o.OutboxLeft)},
		{"fsync", o.Fsync}, {"synchronous_commit", o.SynchronousCommit}, {"PostgreSQL", o.Versions["postgres"]}} {
		if f.Value != "" && f.Value != "-" {
			c.Facts = append(c.Facts, f)
		}
	}
	if len(o.history) == 0 {
		return c
	}
	from, to := o.history[0].At, o.history[0].At
	for _, r := range o.history {
		if r.At.Before(from) {
			from = r.At
		}
		if r.At.After(to) {
			to = r.At
		}
	}
	c.Span = ms(to.Sub(from))
	c.draw(o.history, from, max(to.Sub(from), time.Millisecond))
	return c
}

// draw puts each record on its lane, and the first of them into the list.
func (c *reportCheck) draw(history []Record, from time.Time, span time.Duration) {
	lanes := map[string]int{}
	for i := range history {
		r := &history[i]
		at, known := lanes[r.Who]
		if !known {
			at = len(c.Lanes)
			lanes[r.Who] = at
			c.Lanes = append(c.Lanes, lane{Who: r.Who, Y: at*laneHeight + laneHeight/2, LabelY: at*laneHeight + laneHeight/2 + 4})
		}
		since := r.At.Sub(from)
		text := fmt.Sprintf("%s  %s", ms(since), r)
		x := labelWidth + int(float64(reportWidth-labelWidth-10)*float64(since)/float64(span))
		c.Lanes[at].Marks = append(c.Lanes[at].Marks, mark{X: x, Class: classOf(r), Text: text})
		if len(c.Lines) < listedLines {
			c.Lines = append(c.Lines, line{At: ms(since), Who: r.Who, Text: r.String(), Class: classOf(r)})
		}
	}
	c.Height = len(c.Lanes) * laneHeight
}

// classOf is the colour of a record.
func classOf(r *Record) string {
	switch {
	case r.What == Crash || r.What == Lost || r.What == In && (r.Type == "error" || r.Type == "bye"):
		return "bad"
	case r.What == Applied || r.What == Settled || r.What == Cursor || r.What == Held:
		return "good"
	case r.What == In && r.Type == "hint":
		return "hint"
	case r.What == In:
		return "in"
	case r.What == Out:
		return "out"
	}
	return "other"
}
