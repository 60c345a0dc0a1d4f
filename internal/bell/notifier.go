package bell

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// maxWaiting bounds the bells of one channel that wait in a Notifier; beyond it the newest are left out, since one of the
// others wakes the same readers. Each channel has its own bound: a flood of what may be lost takes no bell's place.
const maxWaiting = 1024

// Notifier rings after a commit, over one connection of its own: a NOTIFY inside the transaction would make it wait for a
// lock that the whole cluster shares. Equal bells that wait are rung once.
type Notifier struct {
	connect func(context.Context) (*pgx.Conn, error)
	log     *slog.Logger
	wake    chan struct{} // capacity 1
	cancel  context.CancelFunc
	done    chan struct{} // closed by the goroutine
	start   sync.Once

	mu      sync.Mutex                     // guards waiting
	waiting map[string]map[string]struct{} // by channel, of which there are few
}

// NewNotifier makes one that is not started; bells wait until then.
func NewNotifier(connect func(context.Context) (*pgx.Conn, error), log *slog.Logger) *Notifier {
	return &Notifier{connect: connect, log: log, wake: make(chan struct{}, 1), done: make(chan struct{}), waiting: map[string]map[string]struct{}{}}
}

// Start begins ringing; a second call does nothing.
func (n *Notifier) Start(ctx context.Context) {
	n.start.Do(func() {
		ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go n.run(ctx)
	})
}

// Stop ends the goroutine and waits for it; what waits is not rung, the readers poll. Legal twice, and before Start.
func (n *Notifier) Stop() {
	n.start.Do(func() { close(n.done) })
	if n.cancel != nil {
		n.cancel()
	}
	<-n.done
}

// Ring asks for a bell. It never blocks.
func (n *Notifier) Ring(channel, payload string) {
	n.mu.Lock()
	bells := n.waiting[channel]
	if bells == nil {
		bells = map[string]struct{}{}
		n.waiting[channel] = bells
	}
	if len(bells) < maxWaiting {
		bells[payload] = struct{}{}
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *Notifier) run(ctx context.Context) {
	defer close(n.done)
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = conn.Close(cctx)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		n.mu.Lock()
		bells := n.waiting
		n.waiting = map[string]map[string]struct{}{}
		n.mu.Unlock()
		if err := n.ring(ctx, &conn, bells); err != nil && ctx.Err() == nil {
			n.log.Debug("bells were not rung; the readers poll", "error", err)
			select { // a database that is away is not asked in a tight loop
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}
}

// ring sends all of them in one round trip. They are not tried again: a bell that is late wakes nobody who has not polled.
func (n *Notifier) ring(ctx context.Context, conn **pgx.Conn, bells map[string]map[string]struct{}) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if *conn == nil || (*conn).IsClosed() {
		if *conn, err = n.connect(ctx); err != nil {
			*conn = nil
			return err
		}
	}
	b := &pgx.Batch{}
	for channel, payloads := range bells {
		for p := range payloads {
			b.Queue("select pg_notify($1, $2)", channel, p)
		}
	}
	return (*conn).SendBatch(ctx, b).Close()
}
