package embedpg

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The log stays within two files of maxLog: at the start by renaming, later by cutting
// the file that PostgreSQL keeps open.
func TestLogBounded(t *testing.T) {
	f := folder{t.TempDir()}
	big := bytes.Repeat([]byte("0123456789abcde\n"), maxLog/16+10)
	must(t, os.WriteFile(f.log(), append(big, "the end\n"...), 0o600))
	must(t, trimLog(f.log()))
	kept := read(t, f.log()+".1")
	if len(kept) != maxLog || !strings.HasSuffix(kept, "the end\n") || read(t, f.log()) != "" {
		t.Errorf("trimmed to %d and %d bytes", len(kept), len(read(t, f.log())))
	}

	must(t, os.WriteFile(f.log(), big, 0o600))
	file, err := openLog(f)
	must(t, err)
	defer file.Close()
	if info, _ := file.Stat(); info.Size() != 0 || len(read(t, f.log()+".1")) != len(big) {
		t.Error("not renamed at the start")
	}
	must(t, os.Remove(f.log()))
	must(t, os.Symlink(filepath.Join(f.root, "elsewhere"), f.log()))
	if file, err := openLog(f); err == nil {
		file.Close()
		t.Error("the log followed a symbolic link")
	}
}

func TestLastLines(t *testing.T) {
	if got := lastLines("a\nb\n"); got != "a\nb" {
		t.Errorf("%q", got)
	}
	if got := lastLines(strings.Repeat("x\n", 100)); strings.Count(got, "x") != tailLines {
		t.Errorf("%d lines", strings.Count(got, "x"))
	}
}

// What lsof prints on Darwin; the folder must match whole.
func TestParseLsof(t *testing.T) {
	out := "p10\nfcwd\nn/data/pg\np11\nfcwd\nn/data/pg2\np12\nfcwd\nn/data/pg\n"
	if got := parseLsof(out, "/data/pg"); !slices.Equal(got, []int{10, 12}) {
		t.Errorf("%v", got)
	}
}

// Ready only when the file speaks of our own child.
func TestReadyLine(t *testing.T) {
	file := "42\n/data\n1700000000\n5432\n/tmp/s\n\n  5432001         7\n%s   \n"
	for state, want := range map[string]bool{"ready": true, "standby": true, "starting": false, "stopping": false} {
		if got := readyLine(strings.Replace(file, "%s", state, 1), 42); got != want {
			t.Errorf("%s: %v", state, got)
		}
	}
	if readyLine(strings.Replace(file, "%s", "ready", 1), 43) || readyLine("42\n", 42) {
		t.Error("ready by somebody else's file")
	}
}
