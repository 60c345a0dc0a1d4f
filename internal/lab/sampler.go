package lab

import (
	"context"
	"sync"
	"time"
)

// sampleEvery is how often the stored cursors are looked at. What moves back and forth between two looks is not seen; each
// move that a client is told of is.
const sampleEvery = 25 * time.Millisecond

// sampler writes down each change of device_cursors, together with the head that the device may see in the same snapshot.
// The heads are worked out here and not by the product's function.
type sampler struct {
	db   *database
	hist *History
	done sync.WaitGroup
	mu   sync.Mutex // guards last
	last map[[2]string]place
}

// place is what must not change unnoticed.
type place struct{ epoch, install, start, delivered int64 }

const samplerSQL = `select d.user_id || '/' || d.device_name, c.conv_id, c.epoch, c.install_epoch, c.start_seq, c.delivered_seq,
       coalesce((select max(e.seq) from posthorn.events e where e.conv_id = c.conv_id and e.seq <= coalesce(
           (select coalesce(m.to_seq, 9007199254740991) from posthorn.memberships m
             where m.conv_id = c.conv_id and m.user_id = d.user_id order by m.from_seq desc limit 1), 0)), 0)
  from posthorn.device_cursors c join posthorn.devices d using (device_id)`

func startSampler(ctx context.Context, db *database, hist *History) *sampler {
	s := &sampler{db: db, hist: hist, last: map[[2]string]place{}}
	s.done.Go(func() {
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = s.sample(ctx) // the database may be down, which is what some checks are about
			}
		}
	})
	return s
}

// rest keeps the sampler from looking until the function that it gives is called. Sessions of a primary that was killed live
// on for a moment, and see what had been waiting for a standby that never got it.
func (s *sampler) rest() (resume func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

// sample looks once.
func (s *sampler) sample(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	rows, err := s.db.pool.Query(ctx, samplerSQL)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r := Record{What: Cursor}
		if err := rows.Scan(&r.Who, &r.Conv, &r.Epoch, &r.Install, &r.Start, &r.Delivered, &r.Head); err != nil {
			return err
		}
		key, now := [2]string{r.Who, r.Conv}, place{r.Epoch, r.Install, r.Start, r.Delivered}
		if old, seen := s.last[key]; !seen || old != now {
			s.last[key] = now
			s.hist.Add(r)
		}
	}
	return rows.Err()
}
