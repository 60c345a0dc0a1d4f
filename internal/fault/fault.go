// Package fault holds the named points at which the lab breaks real processes. The release build carries them: a point
// that is not armed costs one branch.
//
// A specification is `point:action[:skip[:count]]`, comma-separated, read once at start from POSTHORN_FAULT or IM_FAULT.
// Actions are halt (exit 137 at once, no clean-up), drop, delay=MS, error and hang. skip (default 0) hits pass before the
// action starts, count (default unlimited) hits are acted on; hits are counted per process.
//
// It imports the standard library only and starts no goroutine.
package fault

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Point names a place in the code.
type Point string

// The points. Their names are part of the lab's contract.
const (
	SendBeforeInsert   Point = "send.before_insert"
	SendBeforeCommit   Point = "send.before_commit"
	APIAfterSendCommit Point = "api.after_send_commit"
	GwReplySend        Point = "gw.reply.send" // the sent that answers a send
	GwPush             Point = "gw.push"       // event frames only
	GwAck              Point = "gw.ack"        // an ack frame received, before it is gathered
	StoreDrain         Point = "store.drain"   // one commit row read by the tail
	StoreListen        Point = "store.listen"
	AckBeforeCommit    Point = "ack.before_commit"
	AckAfterCommit     Point = "ack.after_commit"
	SyncPage           Point = "sync.page"
	ClientBeforeStore  Point = "client.before_store"
	ClientAfterStore   Point = "client.after_store"
	ClientBeforeAck    Point = "client.before_ack"
)

// Points lists every point that can be armed.
func Points() []Point {
	return []Point{SendBeforeInsert, SendBeforeCommit, APIAfterSendCommit, GwReplySend, GwPush, GwAck, StoreDrain, StoreListen,
		AckBeforeCommit, AckAfterCommit, SyncPage, ClientBeforeStore, ClientAfterStore, ClientBeforeAck}
}

// Err is what a point with action error returns.
var Err = errors.New("injected fault")

type rule struct {
	action string
	delay  time.Duration
	skip   int64
	count  int64 // < 0: unlimited
	hits   atomic.Int64
}

var (
	armed atomic.Bool
	mu    sync.RWMutex
	rules map[Point]*rule // guarded by mu
)

// Load arms the points of the environment; called once by main.
func Load() error {
	spec := os.Getenv("POSTHORN_FAULT")
	if spec == "" {
		spec = os.Getenv("IM_FAULT")
	}
	return Arm(spec)
}

// Arm replaces what is armed. The empty specification disarms everything.
func Arm(spec string) error {
	next := map[Point]*rule{}
	for _, part := range strings.Split(spec, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		p, r, err := parse(part)
		if err != nil {
			return fmt.Errorf("fault %q: %w", part, err)
		}
		next[p] = r
	}
	mu.Lock()
	defer mu.Unlock()
	rules = next
	armed.Store(len(next) > 0)
	return nil
}

func parse(part string) (Point, *rule, error) {
	f := strings.Split(part, ":")
	if len(f) < 2 || len(f) > 4 {
		return "", nil, errors.New("want point:action[:skip[:count]]")
	}
	p := Point(f[0])
	if !slices.Contains(Points(), p) {
		return "", nil, errors.New("no such point")
	}
	r := &rule{action: f[1], count: -1}
	if ms, ok := strings.CutPrefix(f[1], "delay="); ok {
		n, err := strconv.ParseUint(ms, 10, 31)
		if err != nil {
			return "", nil, errors.New("delay wants milliseconds")
		}
		r.action, r.delay = "delay", time.Duration(n)*time.Millisecond
	}
	if !slices.Contains([]string{"halt", "drop", "delay", "error", "hang"}, r.action) {
		return "", nil, errors.New("no such action")
	}
	for i, into := range []*int64{&r.skip, &r.count} {
		if len(f) > 2+i {
			n, err := strconv.ParseUint(f[2+i], 10, 31)
			if err != nil {
				return "", nil, errors.New("skip and count are whole numbers")
			}
			*into = int64(n)
		}
	}
	return p, r, nil
}

// Armed tells whether the point has a rule. Code that must take another path while a point is armed (COMMIT sent apart)
// asks it.
func Armed(p Point) bool {
	if !armed.Load() {
		return false
	}
	mu.RLock()
	defer mu.RUnlock()
	return rules[p] != nil
}

// Hit passes the point: it halts, waits or hangs as armed, and tells the caller to drop what it holds or to fail.
func Hit(p Point) (drop bool, err error) {
	if !armed.Load() {
		return false, nil
	}
	return hit(p)
}

func hit(p Point) (bool, error) {
	mu.RLock()
	r := rules[p]
	mu.RUnlock()
	if r == nil {
		return false, nil
	}
	n := r.hits.Add(1)
	if n <= r.skip || (r.count >= 0 && n > r.skip+r.count) {
		return false, nil
	}
	switch r.action {
	case "halt":
		os.Exit(137)
	case "delay":
		time.Sleep(r.delay)
	case "hang":
		select {}
	case "drop":
		return true, nil
	case "error":
		return false, fmt.Errorf("%w at %s", Err, p)
	}
	return false, nil
}

// Drop is Hit for places that can only drop.
func Drop(p Point) bool {
	drop, err := Hit(p)
	return drop || err != nil
}
