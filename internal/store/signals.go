package store

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/posthorn/posthorn"
)

// signal is a durable fact that is no event. It only points at what a table holds, so where signals may have been missed
// that is read instead (reload).
type signal struct {
	kind, key, payload string
}

// obey carries out what signals say. Every one may come twice. An epoch needs nothing: each look reads it.
func (s *Store) obey(signals []signal) {
	for _, g := range signals {
		device, err := strconv.ParseInt(g.key, 10, 64)
		if err != nil {
			continue
		}
		switch g.kind {
		case "revoke":
			s.cfg.Fanout.Revoked(device)
		case "route":
			if generation, err := strconv.ParseInt(g.payload, 10, 64); err == nil {
				s.cfg.Fanout.Replaced(device, generation)
			}
		}
	}
}

// reload reads for everybody who is connected here what signals point at: newer connections elsewhere, revocations.
func (s *Store) reload(ctx context.Context) error {
	return s.release(ctx, s.cfg.Fanout.Devices())
}

func (s *Store) release(ctx context.Context, devices []posthorn.Viewer) error {
	if len(devices) == 0 {
		return nil
	}
	ids, generations := make([]int64, len(devices)), make([]int64, len(devices))
	for i, v := range devices {
		ids[i], generations[i] = v.DeviceID, v.Generation
	}
	rows, err := s.pool.Query(ctx, s.sql(routesSQL), ids, generations)
	if err != nil {
		return err
	}
	var device, generation int64
	var revoked bool
	_, err = pgx.ForEachRow(rows, []any{&device, &generation, &revoked}, func() error {
		if revoked {
			s.cfg.Fanout.Revoked(device)
		} else {
			s.cfg.Fanout.Replaced(device, generation)
		}
		return nil
	})
	return err
}

// Rings is rings for what is written beside the store.
func (s *Store) Rings(what string) { s.rings(what) }

// rings wakes the other gateways after a commit that is no batch of messages.
func (s *Store) rings(what string) {
	s.notifier.Ring(s.cfg.Channel, what+":1")
}
