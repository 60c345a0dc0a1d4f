package embedpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The inputs of B67 that start many at once.

// Ten new folders at the same time, initdb and all.
func testTenFolders(t *testing.T) {
	root := tempDir(t)
	servers := inParallel(10, func(i int) (*Server, error) {
		return Start(context.Background(), Config{DataDir: filepath.Join(root, strconv.Itoa(i))})
	})
	urls := map[string]bool{}
	for _, r := range servers {
		if r.err != nil {
			t.Error(r.err)
			continue
		}
		query(t, r.s.URL(), "select 1")
		urls[r.s.URL()] = true
		socketDirs.Store(filepath.Dir(r.s.SocketPath()), true)
	}
	if len(urls) != 10 {
		t.Errorf("%d different URLs", len(urls))
	}
	for _, err := range stopAll(servers) {
		t.Error(err)
	}
}

// Ten at the same time on one new folder: one wins, the others are told why not.
func testOneFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), "pg")
	servers := inParallel(10, func(int) (*Server, error) {
		return Start(context.Background(), Config{DataDir: dir})
	})
	winners := 0
	for _, r := range servers {
		switch {
		case r.err == nil:
			winners++
			query(t, r.s.URL(), "select 1")
			second := spawn(t, Config{DataDir: dir}, nil) // another process
			if err := second.word(t); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by another process (pid %d)", os.Getpid())) {
				t.Errorf("a second posthorn: %v", err)
			}
		case !errors.Is(r.err, ErrInUse):
			t.Errorf("a loser: %v", r.err)
		}
	}
	if winners != 1 {
		t.Errorf("%d winners", winners)
	}
	for _, err := range stopAll(servers) {
		t.Error(err)
	}
}

type result struct {
	s   *Server
	err error
}

func inParallel(n int, f func(i int) (*Server, error)) []result {
	all := make([]result, n)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i].s, all[i].err = f(i) })
	}
	wg.Wait()
	return all
}

func stopAll(all []result) (errs []error) {
	for _, r := range all {
		if r.s != nil {
			if err := r.s.Stop(context.Background()); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}
