package store

import (
	"context"

	"github.com/posthorn/posthorn"
)

// Hello begins a session of a device: it finds or assigns the install and renews the nonce.
func (s *Store) Hello(ctx context.Context, h posthorn.Hello) (posthorn.Session, error) {
	var code string
	sess := posthorn.Session{Viewer: posthorn.Viewer{User: h.User, Device: h.Device}}
	var resume *string
	if h.Resume != "" {
		resume = &h.Resume
	}
	err := s.pool.QueryRow(ctx, s.sql(helloSQL), h.User, h.Device, h.Install, resume).Scan(&code, &sess.Viewer.DeviceID, &sess.Viewer.Install, &sess.Resume, &sess.Viewer.Epoch)
	if err != nil {
		return posthorn.Session{}, readError(err)
	}
	switch posthorn.Code(code) {
	case "":
		return sess, nil
	case posthorn.CodeStaleInstall:
		return posthorn.Session{}, staleInstall()
	}
	return posthorn.Session{}, posthorn.Errorf(posthorn.Code(code), "the device is revoked")
}

// FirstFrame notes that the client has stored its new nonce; the previous one is void from the next flush on.
func (s *Store) FirstFrame(sess posthorn.Session) { s.acks.first(sess) }

// Registered will tell when a newer connection of the device was made elsewhere meanwhile.
func (s *Store) Registered(posthorn.Session) {}

// staleInstall refuses the frames of an install that another one has replaced (I1).
func staleInstall() error {
	return posthorn.Errorf(posthorn.CodeStaleInstall, "a newer install of this device exists")
}
