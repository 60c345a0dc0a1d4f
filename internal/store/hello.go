package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthorn/posthorn"
)

// Hello begins a session of a device: it finds or assigns the install, renews the nonce and takes over the device's route.
func (s *Store) Hello(ctx context.Context, h posthorn.Hello) (posthorn.Session, error) {
	if s.heard(h.Epoch) {
		return posthorn.Session{}, unavailable("the history of the database is being compared", nil)
	}
	a := &helloAsked{Hello: h, gone: ctx, answer: make(chan helloAnswer, 1)}
	if err := s.hellos.add(a); err != nil {
		return posthorn.Session{}, err
	}
	select {
	case got := <-a.answer:
		return got.session, got.err
	case <-ctx.Done():
		return posthorn.Session{}, unavailable("not answered in time", ctx.Err())
	}
}

// Registered has the device's route read once more: from now on a newer one is told by a signal, and one that was made
// before now may have been told when nobody was there to hear it.
func (s *Store) Registered(sess posthorn.Session) {
	q := &s.hellos
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.registered) < maxHellos {
		q.registered = append(q.registered, sess.Viewer)
	} else {
		s.unsure.Store(true) // all routes are read
		s.tail.wake()
	}
	poke(q.wake)
}

// runHellos flushes what has been gathered.
func (s *Store) runHellos() {
	defer s.hellos.close()
	for {
		select {
		case <-s.quit:
			return
		case <-s.hellos.wake:
		}
		batch, registered := s.hellos.take()
		live := batch[:0]
		for _, a := range batch {
			if a.gone.Err() == nil {
				live = append(live, a)
			}
		}
		if len(live) > 0 {
			s.flushHellos(live)
		}
		if len(registered) > 0 {
			ctx, cancel := context.WithTimeout(s.hard, 10*time.Second)
			if err := s.release(ctx, registered); err != nil {
				s.again(registered)
			}
			cancel()
		}
	}
}

// again keeps what could not be read for the next flush.
func (s *Store) again(registered []posthorn.Viewer) {
	s.hellos.mu.Lock()
	s.hellos.registered = append(registered, s.hellos.registered...)
	s.hellos.mu.Unlock()
	time.AfterFunc(500*time.Millisecond, func() { poke(s.hellos.wake) })
}

// flushHellos begins the sessions of a batch; one that the database refuses does not fail the others.
func (s *Store) flushHellos(batch []*helloAsked) {
	answers, elsewhere, err := s.beginSessions(batch)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && dataError(pg) && len(batch) > 1 {
		s.flushHellos(batch[:len(batch)/2])
		s.flushHellos(batch[len(batch)/2:])
		return
	}
	for i, a := range batch {
		if err != nil {
			a.answer <- helloAnswer{err: s.readError(err)}
		} else {
			a.answer <- answers[i]
		}
	}
	if elsewhere {
		s.rings("routes")
	}
}

func (s *Store) beginSessions(batch []*helloAsked) (answers []helloAnswer, elsewhere bool, err error) {
	n := len(batch)
	users, devices, installs := make([]string, n), make([]string, n), make([]*int64, n)
	resumes, connections := make([]*string, n), make([]int64, n)
	for i, a := range batch {
		users[i], devices[i], installs[i], connections[i] = a.User, a.Device, a.Install, a.connection
		if a.Resume != "" {
			resumes[i] = &a.Resume
		}
	}
	ctx, cancel := context.WithTimeout(s.hard, 10*time.Second)
	defer cancel()
	args, err := s.guarded(s.cfg.Gateway, users, devices, installs, resumes, connections)
	if err != nil {
		return nil, false, err
	}
	rows, err := s.pool.Query(ctx, s.sql(helloSQL), args...)
	if err != nil {
		return nil, false, err
	}
	answers = make([]helloAnswer, n)
	var at int64
	var code string
	var route bool
	var v posthorn.Viewer
	var resume string
	_, err = pgx.ForEachRow(rows, []any{&at, &code, &v.DeviceID, &v.Install, &resume, &v.Epoch, &v.Generation, &route}, func() error {
		a := batch[at-1]
		v.User, v.Device = a.User, a.Device
		elsewhere = elsewhere || route
		switch posthorn.Code(code) {
		case "":
			answers[at-1] = helloAnswer{session: posthorn.Session{Viewer: v, Resume: resume}}
		case posthorn.CodeStaleInstall:
			answers[at-1] = helloAnswer{err: staleInstall()}
		default:
			answers[at-1] = helloAnswer{err: posthorn.Errorf(posthorn.Code(code), "the device is revoked")}
		}
		return nil
	})
	return answers, elsewhere, err
}

// FirstFrame notes that the client has stored its new nonce; the previous one is void from the next flush on.
func (s *Store) FirstFrame(sess posthorn.Session) { s.acks.first(sess) }

// staleInstall refuses the frames of an install that another one has replaced (I1).
func staleInstall() error {
	return posthorn.Errorf(posthorn.CodeStaleInstall, "a newer install of this device exists")
}
