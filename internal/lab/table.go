package lab

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// printLine tells of one check as soon as it is over.
func printLine(out io.Writer, o *Outcome) {
	fmt.Fprintf(out, "%-7s %s (seed %d, %.1f s)  expected: %s  observed: %s\n", o.Result.Result, o.Check, o.Seed, o.Duration, o.Expected, o.Observed)
}

// printTable is for people: what stands in result.json, in columns.
func printTable(out io.Writer, outcomes []*Outcome) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "\ncheck\tseed\texit\tfirst reply\trows after crash\tafter resend\tdup\toutbox\ttime\tresult")
	var s Summary
	for _, o := range outcomes {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f s\t%s\n", o.Check, o.Seed, cell(o.GatewayExit), cell(o.FirstReply), cell(o.RowsAfterCrash),
			cell(o.RowsAfterResend), cell(o.ResendDup), cell(o.OutboxLeft), o.Duration, o.Result.Result)
		s.count(o)
	}
	_ = w.Flush() // out is the terminal; its errors are nobody's business
	fmt.Fprintf(out, "\n%d passed, %d failed, %d not run\n", s.Passed, s.Failed, s.NotRun)
	for _, o := range outcomes {
		if o.logs != "" {
			fmt.Fprintf(out, "logs of %s: %s\n", o.Check, o.logs)
		}
	}
}

// cell is a value, or a dash where the check has no such thing.
func cell[T int | string | bool](v *T) string {
	if v == nil {
		return "-"
	}
	switch x := any(*v).(type) {
	case int:
		return strconv.Itoa(x)
	case bool:
		return strconv.FormatBool(x)
	default:
		return fmt.Sprint(x)
	}
}
