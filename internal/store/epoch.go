package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

var errWaiting = errors.New("the history of the database is being compared")

// facts is what the database says of itself, and how much of the memory it confirms.
type facts struct {
	space       string
	epoch       int64
	system      int64
	stored      *string // the timeline on which the epoch was settled
	timeline    *string // the one that WAL is written to; nil: it is a standby
	lostPairs   int
	lostBatches int
}

// compare holds the database to what this gateway has seen of it, decides with the other gateways whether the epoch stays,
// and opens the guard. Nothing is served meanwhile. Only the tail calls it. full: the heads of all that is followed here, too.
func (s *Store) compare(ctx context.Context, l *look, full bool) error {
	m := s.witness.recall()
	f, err := s.facts(ctx, &m)
	if err != nil {
		return err
	}
	if f.timeline == nil {
		s.guard.shut("the database is a standby")
		return errWaiting
	}
	same := m.Space == f.space
	if same && m.System == f.system && *f.timeline < m.Timeline {
		s.guard.shut("an older primary has come back: its timeline " + *f.timeline + " ended when " + m.Timeline + " began")
		s.olderPrimary(*f.timeline, m.Timeline)
		return errWaiting
	}
	var vouches *bool
	presented := s.presented.Load()
	believed := false
	if full && same && m.Epoch == f.epoch && f.epoch == s.guard.epoch.Load() && f.lostPairs == 0 {
		if f.lostPairs, err = s.shorter(ctx); err != nil {
			return err
		}
	}
	if same && m.Epoch == f.epoch && len(m.Pairs)+len(m.Batches)+f.lostPairs > 0 {
		// The batches of another cluster have other transaction ids; its events speak for them.
		yes := f.lostPairs == 0 && (f.lostBatches == 0 || f.system != m.System)
		vouches = &yes
	}
	if same && m.Epoch > f.epoch {
		presented, believed = max(presented, m.Epoch), true
	}
	var state string
	var epoch int64
	var renewed *string
	args := []any{s.cfg.Gateway, m.Gateway, f.epoch, vouches, absent0(presented), believed, interval(s.cfg.Limits.GatewayLease)}
	if err := s.pool.QueryRow(ctx, s.sql(settleSQL), args...).Scan(&state, &epoch, &renewed); err != nil {
		return err
	}
	switch {
	case state == "wait":
		s.guard.shut("waiting for the other gateways to compare the new timeline with what they have seen")
		return errWaiting
	case state != "ok", renewed != nil && s.renewed(epoch, *renewed):
		s.tail.wake()
		return errWaiting // look again: the mark is another one now
	}
	if presented > epoch { // heard, and not believed
		s.declined.Store(max(presented, s.declined.Load()))
		s.declinedAt.Store(time.Now().Unix())
	}
	s.presented.CompareAndSwap(presented, 0)
	beat, err := s.enlist(ctx)
	if err != nil {
		return err
	}
	s.guard.beat.Store(beat)
	s.witness.adopt(s.cfg.Gateway, f.space, epoch, f.system, *f.timeline)
	if epoch != s.guard.epoch.Load() {
		s.cfg.Fanout.NewEpoch(epoch)
	}
	s.guard.open(l.mark, epoch)
	return nil
}

// shorter counts the conversations of which more was fanned out here than there is: the pairs are only a sample.
func (s *Store) shorter(ctx context.Context) (n int, err error) {
	heads := s.cfg.Fanout.Heads()
	convs, seqs := make([]string, 0, len(heads)), make([]int64, 0, len(heads))
	for conv, head := range heads {
		convs, seqs = append(convs, conv), append(seqs, head)
	}
	if len(convs) == 0 {
		return 0, nil
	}
	err = s.pool.QueryRow(ctx, s.sql(shorterSQL), convs, seqs).Scan(&n)
	return n, err
}

// renewed tells people of a new epoch; always true.
func (s *Store) renewed(epoch int64, why string) bool {
	s.stats.renewals.Add(1)
	s.alarm("history was rewound: a new epoch begins, all clients compare what they hold", "epoch", epoch, "why", why)
	s.rings("epoch")
	return true
}

// alarm is for what an operator must look at.
func (s *Store) alarm(msg string, args ...any) { s.log.Error(msg, args...) }

func (s *Store) facts(ctx context.Context, m *memory) (*facts, error) {
	convs, seqs, mids := make([]string, 0, len(m.Pairs)), make([]int64, 0, len(m.Pairs)), make([]string, 0, len(m.Pairs))
	for conv, p := range m.Pairs {
		convs, seqs, mids = append(convs, conv), append(seqs, p.Seq), append(mids, p.Mid)
	}
	txs, origins, batches := make([]string, len(m.Batches)), make([]string, len(m.Batches)), make([]int64, len(m.Batches))
	for i, b := range m.Batches {
		txs[i], origins[i], batches[i] = b.Tx, b.Origin, b.Batch
	}
	f := &facts{}
	err := s.pool.QueryRow(ctx, s.sql(factsSQL), convs, seqs, mids, txs, origins, batches).
		Scan(&f.space, &f.epoch, &f.system, &f.stored, &f.timeline, &f.lostPairs, &f.lostBatches)
	return f, err
}

func (s *Store) enlist(ctx context.Context) (beat int64, err error) {
	err = s.pool.QueryRow(ctx, s.sql(enlistSQL), s.cfg.Gateway, s.guard.beat.Load(), interval(s.cfg.Limits.GatewayLease)).Scan(&beat)
	return beat, err
}

// interval is how PostgreSQL reads a duration.
func interval(d time.Duration) string { return d.String() }

// heard takes the newest epoch that a client says it has seen. Where it is later than ours, the database was rewound
// to before it began: a new one must begin, above both. Clients may lie, so they are heard once in ten minutes.
//
// true: it must be decided first whether that is so; nobody is welcomed in a history that may be the wrong one.
func (s *Store) heard(epoch int64) (wait bool) {
	if time.Now().Unix()-s.declinedAt.Load() > 600 {
		s.declined.Store(0) // by now it would be believed
	}
	if epoch <= s.guard.epoch.Load() || epoch <= s.declined.Load() || epoch > time.Now().Add(25*time.Hour).UnixMilli() {
		return false // a day ahead by the database's clock is the bound; this keeps nonsense from hiding what is true
	}
	for old := s.presented.Load(); epoch > old; old = s.presented.Load() {
		if s.presented.CompareAndSwap(old, epoch) {
			break
		}
	}
	// A device that says so again and again has the history compared once a second, and waits.
	now := time.Now().UnixMilli()
	if last := s.askedAt.Load(); now-last >= 1000 && s.askedAt.CompareAndSwap(last, now) {
		s.doubt.Store(true)
		s.tail.wake()
	}
	return true
}

// Adopt has an operator vouch that the cluster behind the URL goes on where another one stopped: after a major upgrade or a
// move to another machine. It tells what was adopted, or "".
func Adopt(ctx context.Context, url, schema string) (told string, err error) {
	if schema == "" {
		schema = "posthorn"
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return "", errors.New("the database URL cannot be read")
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = conn.QueryRow(ctx, InSchema(adoptSQL, schema)).Scan(&told)
	return told, err
}
