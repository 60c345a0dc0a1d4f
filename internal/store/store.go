package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/bell"
)

// Config of a Store.
type Config struct {
	// URL of the database, as libpq understands it. Required.
	URL string
	// Schema that holds the tables; default "posthorn".
	Schema string
	// Channel of the doorbell; default "im_events".
	Channel string
	// Poll switches the listener off: the tail polls, sends still ring for others.
	Poll bool
	// Gateway names this process in event_commits; default a random id.
	Gateway string
	// Witness is the file in which this gateway keeps what the database must still hold after a restart; "": in memory only.
	Witness string
	// Suspend is told when the database has been away for two thirds of the lease, and when it is back. May be nil.
	Suspend func(on bool)
	// Fanout gets what was committed. Required before Start; it may be set by SetFanout since it needs the store itself.
	Fanout posthorn.Fanout
	// Limits in force.
	Limits posthorn.Limits
	// AllowUnsafe lets the store work on a database with fsync off; only for --dev.
	AllowUnsafe bool
	// Logger; default discards.
	Logger *slog.Logger
}

// Store is the message store on one database.
type Store struct {
	cfg  Config
	log  *slog.Logger
	pool *pgxpool.Pool
	conn *pgx.ConnConfig // for connections outside the pool

	queue    queue
	acks     ackQueue
	hellos   helloQueue
	out      chan delivery
	opener   chan *writer // holds the one that opens conversations while nobody uses it
	tail     tail
	audit    audit          // of the tail's goroutine
	bell     *bell.Listener // nil where the tail polls
	notifier *bell.Notifier
	guard    guard
	witness  witness
	syncLow  atomic.Bool // synchronous_commit is lower than on
	held     atomic.Bool // old transactions hold back pruning
	pooled   atomic.Bool // a transaction pooler stands before the database
	stats    counters

	muted      atomic.Bool // the notification queue is about to fill: sends do not ring
	doubt      atomic.Bool // the tail must compare before it goes on
	suspended  atomic.Bool // the lease is two thirds gone
	unsure     atomic.Bool // all routes must be read again
	declinedAt atomic.Int64
	askedAt    atomic.Int64 // when a client's word last had the tail compare, Unix ms
	declined   atomic.Int64 // the newest epoch that was shown and not believed; written by the tail
	presented  atomic.Int64 // the newest epoch that a client has shown and that is later than ours

	starting sync.Once
	stopping sync.Once
	started  atomic.Bool
	quit     chan struct{}   // closed by Stop: loops end
	hard     context.Context // ended when Stop runs out of time: transactions are cut
	cut      context.CancelFunc
	senders  sync.WaitGroup // batcher and lanes
	workers  sync.WaitGroup // everything else
}

// New connects lazily: the database need not be there yet.
func New(cfg Config) (*Store, error) {
	if cfg.Schema == "" {
		cfg.Schema = "posthorn"
	}
	if cfg.Channel == "" {
		cfg.Channel = "im_events"
	}
	if cfg.Gateway == "" {
		cfg.Gateway = uuid.NewString()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, errors.New("the database URL cannot be read") // pgx's text may hold the password
	}
	pc.MaxConns = int32(max(cfg.Limits.Connections-3-lanes, 2)) // the batcher, the opener, the lease and the lanes have their own
	pc.ConnConfig.ConnectTimeout = 5 * time.Second
	pc.ConnConfig.DialFunc = bell.Dial
	pc.ConnConfig.RuntimeParams["application_name"] = "posthorn"
	s := &Store{cfg: cfg, log: cfg.Logger, conn: pc.ConnConfig.Copy(), quit: make(chan struct{}), out: make(chan delivery, 4), opener: make(chan *writer, 1)}
	s.notifier = bell.NewNotifier(func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, s.connConfig()) }, s.log)
	pc.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { s.suit(c); return nil }
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), pc); err != nil {
		return nil, fmt.Errorf("database pool: %w", err)
	}
	s.guard.shut("the database has not been looked at yet")
	s.hellos.wake = make(chan struct{}, 1)
	s.opener <- s.newWriter("open")
	s.hard, s.cut = context.WithCancel(context.Background())
	s.queue.init(cfg.Limits)
	s.acks.init(cfg.Limits)
	s.tail.init()
	return s, nil
}

// SetFanout joins the hub; before Start.
func (s *Store) SetFanout(f posthorn.Fanout) { s.cfg.Fanout = f }

// Start checks the database and begins the goroutines. The schema must have been migrated.
func (s *Store) Start(ctx context.Context) (err error) {
	s.starting.Do(func() {
		if err = s.check(ctx); err != nil {
			return
		}
		if err := s.witness.load(s.cfg.Witness); err != nil {
			s.log.Warn("what this gateway saw before its restart cannot be read", "error", err)
		}
		// So that whoever starts a server on a quiet database finds it ready.
		if _, err = s.drain(); errors.Is(err, errWaiting) {
			err = nil
		}
		if err == nil {
			_, err = s.drain()
		}
		if err != nil && !errors.Is(err, errWaiting) {
			return
		}
		err = nil
		s.started.Store(true)
		if !s.cfg.Poll {
			s.bell, err = bell.New(bell.Config{Connect: s.dial, Notify: s.notify, Channel: s.cfg.Channel, Ring: s.ring,
				Soft: softChannel(s.cfg.Channel), Told: s.overheard, Logger: s.log})
			if err != nil {
				return
			}
			s.bell.Start(ctx)
		}
		s.notifier.Start(ctx)
		s.senders.Add(1 + lanes)
		go s.runBatcher()
		for i := range lanes {
			go s.runLane(fmt.Sprint("lane ", i))
		}
		for _, loop := range []func(){s.runDeliver, s.runTail, s.runAcks, s.runHellos, s.runLease, s.runTrim, s.runFold} {
			s.workers.Add(1)
			go func() { defer s.workers.Done(); loop() }()
		}
	})
	return err
}

// Stop refuses new ops, finishes what is queued while ctx lasts, and waits for every goroutine. Legal twice, and unstarted.
func (s *Store) Stop(ctx context.Context) {
	s.starting.Do(func() {})
	s.stopping.Do(func() {
		s.queue.close()
		drained := make(chan struct{})
		go func() { s.senders.Wait(); close(drained) }()
		select {
		case <-drained:
		case <-ctx.Done():
			s.queue.abandon()
			s.cut()
			<-drained
		}
		release := context.AfterFunc(ctx, s.cut) // what still waits for the database is cut when the time is over
		defer release()
		close(s.out)
		close(s.quit)
		s.tail.wake()
		if s.bell != nil {
			s.bell.Stop()
		}
		s.workers.Wait()
		select {
		case w := <-s.opener:
			w.close()
		case <-ctx.Done():
			s.cut()
			w := <-s.opener
			w.close()
		}
		s.leave()
		s.notifier.Stop()
		s.cut()
		s.closePool(ctx)
	})
}

// closePool waits for connections that are in use, but not beyond the time that Stop has: whoever still reads then is on
// their own, and the process is about to end.
func (s *Store) closePool(ctx context.Context) {
	closed := make(chan struct{})
	go func() { s.pool.Close(); close(closed) }()
	select {
	case <-closed:
	case <-ctx.Done():
		select {
		case <-closed:
		case <-time.After(time.Second):
			s.log.Warn("connections are still in use; not waiting for them")
		}
	}
}

// check reads what must hold before anything is served.
func (s *Store) check(ctx context.Context) error {
	if err := s.detectPooler(ctx); err != nil {
		return err
	}
	var fsync, sync, encoding, isolation string
	err := s.pool.QueryRow(ctx, s.sql(checkSQL)).Scan(&fsync, &sync, &encoding, &isolation)
	if err != nil {
		return fmt.Errorf("database check: %w", err)
	}
	if fsync != "on" && !s.cfg.AllowUnsafe {
		return errors.New("the database runs with fsync=off: what was answered sent could be lost; only --dev allows it")
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database has encoding %s, Posthorn needs UTF8", encoding)
	}
	if isolation != "read committed" { // a statement after a lock must see what was committed meanwhile
		return fmt.Errorf("default_transaction_isolation is %q for this role, Posthorn needs \"read committed\": ALTER ROLE … SET default_transaction_isolation = 'read committed'", isolation)
	}
	s.syncLow.Store(sync != "on" && sync != "remote_apply")
	_, err = s.pool.Exec(ctx, s.sql(setChannelSQL), s.cfg.Channel)
	return err
}

// sql puts the configured schema into a statement.
func (s *Store) sql(q string) string { return InSchema(q, s.cfg.Schema) }

// Statement is sql for the packages below internal/store.
func (s *Store) Statement(q string) string { return s.sql(q) }

// InSchema puts a schema into a statement that is written for the default one.
func InSchema(q, schema string) string {
	if schema == "posthorn" {
		return q
	}
	name := pgx.Identifier{schema}.Sanitize()
	return strings.ReplaceAll(strings.ReplaceAll(q, "posthorn.", name+"."), "on schema posthorn ", "on schema "+name+" ")
}

// Pool is for the packages below internal/store and for wiring.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }
