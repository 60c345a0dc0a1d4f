package api

import (
	"context"
	"net/http"

	"github.com/posthorn/posthorn"
)

type userBody struct {
	User   field[string] `json:"user" doc:"The user's id."`
	Name   field[string] `json:"name,omitempty" doc:"What others see; unchanged where absent."`
	Avatar field[string] `json:"avatar,omitempty" doc:"The URL of a picture; unchanged where absent."`
}

type userAnswer struct {
	User   string `json:"user"`
	Name   string `json:"name"`
	Avatar string `json:"avatar"`
}

type usersAnswer struct {
	Users []userAnswer `json:"users" nullable:"false"`
	Next  string       `json:"next,omitzero" doc:"Absent at the end."`
}

func shownUser(u User) userAnswer {
	a := userAnswer{User: u.User}
	if u.Name != nil {
		a.Name = *u.Name
	}
	if u.Avatar != nil {
		a.Avatar = *u.Avatar
	}
	return a
}

const avatarBytes = 2048

func (s *Server) users() {
	handle(s, route{
		method: http.MethodPost, path: "/users", id: "putUser", scope: ScopeWrite, device: true,
		summary: "Make or update a user", more: "A device token may name its own user only.",
	}, func(ctx context.Context, c *call, in *userBody) (userAnswer, error) {
		if err := firstError(c.id("user", in.User), c.text("name", in.Name, c.limits.TitleBytes), c.text("avatar", in.Avatar, avatarBytes)); err != nil {
			return userAnswer{}, err
		}
		if !c.Server() && in.User.val != c.User {
			return userAnswer{}, posthorn.Errorf(posthorn.CodeForbidden, "a device token may change its own user only")
		}
		u, err := s.cfg.Directory.PutUser(ctx, User{User: in.User.val, Name: given(in.Name), Avatar: given(in.Avatar)})
		return shownUser(u), err
	})
	handle(s, route{
		method: http.MethodGet, path: "/users", id: "listUsers", scope: ScopeRead, query: paged(), summary: "List users",
	}, func(ctx context.Context, c *call, _ *none) (usersAnswer, error) {
		after, limit, err := c.listed()
		if err != nil {
			return usersAnswer{}, err
		}
		users, next, err := s.cfg.Directory.ListUsers(ctx, after, limit)
		a := usersAnswer{Users: make([]userAnswer, 0, len(users)), Next: next}
		for _, u := range users {
			a.Users = append(a.Users, shownUser(u))
		}
		return a, err
	})
}

// firstError is the first of several checks that failed.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
