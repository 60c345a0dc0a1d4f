package gateway

import (
	"context"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/wire"
)

// login reads until a hello has been welcomed; false: the connection ends. The deadline counts from the upgrade and for
// everything: silence, slow bytes, repeated hellos, waiting for a place, the database.
//
// A hello that is malformed, or that the database cannot answer now, gets its error and may be sent again. Anything else
// as the first frame is UNAUTHENTICATED and ends the connection, as does a token that is no good.
func (s *socket) login() bool {
	deadline := time.Now().Add(s.g.limits.LoginDeadline)
	s.raw.readBy(deadline)
	ctx, cancel := context.WithDeadline(s.ctx, deadline)
	defer cancel()
	for {
		f, bad, err := s.read()
		if err != nil {
			s.end(readFailed(err))
			return false
		}
		t, rid := name(f, bad)
		hello, ok := f.(*wire.Hello)
		r, v := s.begin(t, rid, handler{must: true})
		if v == over || v == refuse {
			return false
		}
		switch {
		case v == suspend:
			r.fail(away())
			continue
		case bad != nil && t == "hello":
			r.fail(bad)
			continue
		case !ok:
			r.fail(posthorn.Errorf(posthorn.CodeUnauthenticated, "the first frame must be hello"))
			return false
		}
		session, err := s.hello(ctx, hello)
		if err == nil {
			s.session = session
			s.raw.readBy(time.Time{})
			r.answer(s.welcome(rid))
			return true
		}
		if r.fail(err).Class() == posthorn.SessionTerminal {
			return false
		}
	}
}

// hello asks whose the token is and opens the session. The places bound what a stampede does to the database.
func (s *socket) hello(ctx context.Context, h *wire.Hello) (posthorn.Session, error) {
	select {
	case s.g.hellos <- struct{}{}:
		defer func() { <-s.g.hellos }()
	case <-ctx.Done():
		return posthorn.Session{}, ctx.Err()
	}
	user, device, install, err := s.g.cfg.Auth.Device(ctx, h.Token)
	if err != nil {
		return posthorn.Session{}, err
	}
	if device == "" {
		device = h.Device
	} else if h.Device != "" && h.Device != device {
		return posthorn.Session{}, posthorn.Errorf(posthorn.CodeUnauthenticated, "the token is for another device")
	}
	if h.Install != nil {
		install = h.Install
	}
	return s.g.cfg.Log.Hello(ctx, posthorn.Hello{User: user, Device: device, Install: install, Resume: h.Resume, Epoch: h.Epoch})
}

func (s *socket) welcome(rid string) *wire.Welcome {
	v := s.session.Viewer
	return &wire.Welcome{
		RID: rid, User: v.User, Device: v.Device, InstallEpoch: v.Install, Resume: s.session.Resume,
		HeartbeatMS: s.g.limits.Heartbeat.Milliseconds(), MaxFrame: int64(s.g.limits.FrameIn),
		Gateway: s.g.cfg.GatewayID, Epoch: v.Epoch,
	}
}
