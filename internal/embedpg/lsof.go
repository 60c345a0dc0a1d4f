package embedpg

import (
	"strconv"
	"strings"
)

// parseLsof reads lsof's field output ("p123", "fcwd", "n/path" on lines of their own)
// and returns the pids whose folder is dir.
func parseLsof(out, dir string) []int {
	var pids []int
	pid := 0
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "p"):
			pid, _ = strconv.Atoi(line[1:])
		case line == "n"+dir && pid > 0:
			pids = append(pids, pid)
		}
	}
	return pids
}
