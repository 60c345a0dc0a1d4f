package api

import (
	"context"
	"net/http"

	"github.com/posthorn/posthorn"
)

type membersBody struct {
	Users field[[]string] `json:"users" doc:"Who comes in; up to 500, in one event."`
	Role  field[string]   `json:"role,omitempty" enum:"member,admin" doc:"Their role, member where absent; only a server key may name admins."`
}

type memberAnswer struct {
	User  string `json:"user"`
	Name  string `json:"name,omitzero"`
	Role  string `json:"role"`
	Since int64  `json:"since" doc:"The seq of the event by which they came in."`
}

type membersAnswer struct {
	Conv    string         `json:"conv"`
	Members []memberAnswer `json:"members" nullable:"false"`
	Next    string         `json:"next,omitzero" doc:"Absent at the end."`
}

func (s *Server) members() {
	handle(s, route{
		method: http.MethodPost, path: "/conversations/{conv}/members", id: "addMembers", scope: ScopeWrite, device: true, keyed: true,
		summary: "Add members",
	}, s.addMembers)
	handle(s, route{
		method: http.MethodDelete, path: "/conversations/{conv}/members/{user}", id: "removeMember", scope: ScopeWrite, device: true, keyed: true,
		summary: "Remove a member", more: "A device token that names its own user leaves.",
	}, func(ctx context.Context, c *call, _ *none) (writtenAnswer, error) {
		op := c.op(posthorn.KindLeave)
		op.Users = []string{c.path("user")}
		return s.submit(ctx, op)
	})
	handle(s, route{
		method: http.MethodGet, path: "/conversations/{conv}/members", id: "listMembers", scope: ScopeRead, device: true, query: paged(),
		summary: "List members",
	}, s.listMembers)
}

func (s *Server) addMembers(ctx context.Context, c *call, in *membersBody) (writtenAnswer, error) {
	op := c.op(posthorn.KindJoin)
	var err error
	if op.Users, err = c.people("users", in.Users); err != nil {
		return writtenAnswer{}, err
	}
	if len(op.Users) == 0 {
		return writtenAnswer{}, posthorn.Errorf(posthorn.CodeBadFrame, "users is missing")
	}
	switch op.Role = posthorn.Role(in.Role.val); {
	case !in.Role.set:
		op.Role = posthorn.RoleMember
	case op.Role != posthorn.RoleMember && op.Role != posthorn.RoleAdmin:
		return writtenAnswer{}, posthorn.Errorf(posthorn.CodeBadFrame, "role must be member or admin")
	case op.Role == posthorn.RoleAdmin && !c.Server():
		return writtenAnswer{}, posthorn.Errorf(posthorn.CodeForbidden, "only a server key may name admins")
	}
	return s.submit(ctx, op)
}

func (s *Server) listMembers(ctx context.Context, c *call, _ *none) (membersAnswer, error) {
	after, limit, err := c.listed()
	if err != nil {
		return membersAnswer{}, err
	}
	conv := c.path("conv")
	members, next, err := s.cfg.Log.Members(ctx, c.viewer(), conv, after, limit)
	a := membersAnswer{Conv: conv, Members: make([]memberAnswer, 0, len(members)), Next: next}
	for _, m := range members {
		a.Members = append(a.Members, memberAnswer{User: m.User, Name: m.Name, Role: string(m.Role), Since: m.Since})
	}
	return a, err
}
