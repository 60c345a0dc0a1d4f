package embedpg

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

const deathSignalWorks = true

// The death signal fires when a thread dies. The thread that calls Start may die long
// before the server; that must not end PostgreSQL.
func TestThreadDeath(t *testing.T) {
	t.Parallel()
	dir := copyFolder(t)
	type started struct {
		s   *Server
		err error
	}
	result := make(chan started)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread dies with this goroutine
		s, err := Start(context.Background(), Config{DataDir: dir, DieWithParent: true})
		result <- started{s, err}
	}()
	r := <-result
	must(t, r.err)
	defer stop(t, r.s)
	// Force the scheduler to make and drop threads.
	for range 50 {
		done := make(chan struct{})
		go func() { defer close(done); runtime.LockOSThread() }()
		<-done
	}
	for range 20 {
		query(t, r.s.URL(), "select 1")
	}
	if log := read(t, r.s.LogFile()); strings.Contains(log[strings.LastIndex(log, "ready to accept"):], "shutdown request") {
		t.Error("PostgreSQL was told to shut down")
	}
}

// The lock must not be inherited: it would outlive us in PostgreSQL.
func TestNoInheritedFiles(t *testing.T) {
	t.Parallel()
	s := start(t, Config{DataDir: copyFolder(t)})
	links, err := filepath.Glob("/proc/" + strconv.Itoa(s.PID()) + "/fd/*")
	must(t, err)
	for _, link := range links {
		target, _ := os.Readlink(link)
		if target == s.folder.lock() || target == filepath.Dir(s.SocketPath()) {
			t.Errorf("PostgreSQL holds %s", target)
		}
	}
	if len(links) == 0 {
		t.Error("no files seen, so this test tests nothing")
	}
}

// alive reports whether the process runs; a zombie, which a lazy init has not reaped yet,
// does not.
func alive(pid int) bool {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, state, _ := strings.Cut(string(content), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
