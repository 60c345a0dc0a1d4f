package gateway

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// complaintInterval bounds how often trouble is logged; what comes between is counted.
const complaintInterval = 100 * time.Millisecond

// complaint is a line for the operator. It holds no token and no body.
type complaint struct {
	level slog.Level
	msg   string
	args  []any
}

// complaints hands lines from where nothing may block (Done functions, handshakes) to the one goroutine that logs.
type complaints struct {
	waiting chan complaint
	skipped atomic.Int64
}

func (g *Gateway) report(level slog.Level, msg string, args ...any) {
	select {
	case g.trouble.waiting <- complaint{level, msg, args}:
	default:
		g.trouble.skipped.Add(1)
	}
}

// complain logs, so that a log that blocks holds up nobody else.
func (g *Gateway) complain() {
	pace := time.NewTicker(complaintInterval)
	defer pace.Stop()
	for {
		select {
		case c := <-g.trouble.waiting:
			if n := g.trouble.skipped.Swap(0); n > 0 {
				c.args = append(c.args, "skipped", n)
			}
			g.log.Log(context.Background(), c.level, c.msg, c.args...)
		case <-g.quit:
			return
		}
		select {
		case <-pace.C:
		case <-g.quit:
			return
		}
	}
}
