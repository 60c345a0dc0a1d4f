package client

import (
	"errors"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

var errSilent = errors.New("client: the server has been silent for a heartbeat after a ping")

func (s *session) heartbeat() time.Duration {
	if s.w.HeartbeatMS > 0 {
		return time.Duration(s.w.HeartbeatMS) * time.Millisecond
	}
	return posthorn.DefaultLimits().Heartbeat
}

// beat comes twice a heartbeat. It pings where either side has been silent for half of one, and gives the connection up
// where a ping brought nothing, no frame of any kind, for a whole one. Only elapsed time counts, not the hour: a clock
// that is set forward ends no connection. A machine that slept is recognised by the two having drifted apart; its
// connection is most likely dead, so it is tried at once and with less patience.
func (s *session) beat() {
	now, beat := time.Now(), s.heartbeat()
	patience := beat
	slept := now.Round(0).Sub(s.beaten.Round(0))-now.Sub(s.beaten) > beat
	if slept {
		patience = min(beat, s.c.cfg.RequestTimeout)
	}
	s.beaten = now
	if s.pinged.IsZero() && (slept || now.Sub(s.heard) >= beat/2 || now.Sub(s.conn.lastWrite()) >= beat/2) {
		s.pinged = now
		s.write(&wire.Ping{RID: s.rid()})
		s.agenda.add(patience, func() {
			if s.pinged.Equal(now) {
				s.fail(errSilent)
			}
		})
	}
	s.agenda.add(beat/2, s.beat)
}
