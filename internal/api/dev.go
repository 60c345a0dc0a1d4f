package api

import (
	"context"
	"net/http"

	"github.com/posthorn/posthorn"
)

type devBody struct {
	User   field[string] `json:"user" doc:"Made where it is new."`
	Device field[string] `json:"device,omitempty" doc:"A new one where absent."`
}

// dev adds the sign-in by name. It asks for no credential, so it must be out of reach of everything but this machine and
// its own pages.
func (s *Server) dev() {
	handle(s, route{
		method: http.MethodPost, path: "/dev/token", id: "devToken",
		summary: "Sign in by name", more: "For trying things: exists with --dev only, and answers to this machine only.",
	}, func(ctx context.Context, c *call, in *devBody) (tokenAnswer, error) {
		if !fromThisMachine(c.r) {
			return tokenAnswer{}, posthorn.Errorf(posthorn.CodeForbidden, "this call answers to localhost and its pages only")
		}
		if err := firstError(c.id("user", in.User), c.optID("device", in.Device)); err != nil {
			return tokenAnswer{}, err
		}
		if _, err := s.cfg.Directory.PutUser(ctx, User{User: in.User.val}); err != nil {
			return tokenAnswer{}, err
		}
		t, err := s.cfg.Keyring.IssueToken(ctx, TokenRequest{User: in.User.val, Device: in.Device.val})
		return shownToken(t), err
	})
}
