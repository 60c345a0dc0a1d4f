package api

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/posthorn/posthorn"
)

type tokenBody struct {
	User    field[string] `json:"user" doc:"Whom the token speaks for."`
	Device  field[string] `json:"device,omitempty" doc:"The device's name, which belongs to its user; made up where absent."`
	Install field[number] `json:"install,omitempty" doc:"The default for a hello that names none."`
	TTL     field[number] `json:"ttl_s,omitempty" doc:"How long the token lives, in seconds: 30 days where absent, a year at most."`
}

type tokenAnswer struct {
	Token     string `json:"token" doc:"Shown this once."`
	User      string `json:"user"`
	Device    string `json:"device"`
	ExpiresAt int64  `json:"expires_at" doc:"In milliseconds since 1970."`
}

func shownToken(t Token) tokenAnswer {
	return tokenAnswer{Token: t.Token, User: t.User, Device: t.Device, ExpiresAt: t.ExpiresAt.UnixMilli()}
}

func (s *Server) tokens() {
	handle(s, route{
		method: http.MethodPost, path: "/tokens", id: "createToken", scope: ScopeAdmin,
		summary: "Make a device token", more: "The device is made where it is new, and begins again where it was revoked.",
	}, func(ctx context.Context, c *call, in *tokenBody) (tokenAnswer, error) {
		if err := firstError(c.id("user", in.User), c.optID("device", in.Device)); err != nil {
			return tokenAnswer{}, err
		}
		if in.TTL.set && (in.TTL.val < 1 || int64(in.TTL.val) > math.MaxInt64/int64(time.Second)) {
			return tokenAnswer{}, posthorn.Errorf(posthorn.CodeBadFrame, "ttl_s is out of range")
		}
		r := TokenRequest{User: in.User.val, Device: in.Device.val, TTL: time.Duration(in.TTL.val) * time.Second}
		if in.Install.set {
			install := int64(in.Install.val)
			r.Install = &install
		}
		t, err := s.cfg.Keyring.IssueToken(ctx, r)
		return shownToken(t), err
	})
	handle(s, route{
		method: http.MethodDelete, path: "/devices/{user}/{device}", id: "revokeDevice", scope: ScopeAdmin,
		summary: "Revoke a device", more: "Its tokens end and its socket closes on every gateway.",
	}, func(ctx context.Context, c *call, _ *none) (none, error) {
		return none{}, s.cfg.Directory.RevokeDevice(ctx, c.path("user"), c.path("device"))
	})
}
