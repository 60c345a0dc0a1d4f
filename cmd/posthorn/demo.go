package main

import (
	"context"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/api"
	"github.com/posthorn/posthorn/internal/store"
)

// demo puts two people and two conversations into a --dev server; on a second start it finds them.
func demo(ctx context.Context, s *store.Store, people users) error {
	ana, bo := "Ana", "Bo"
	for user, name := range map[string]*string{"ana": &ana, "bo": &bo} {
		if _, err := people.PutUser(ctx, api.User{User: user, Name: name}); err != nil {
			return err
		}
	}
	_, err := s.OpenConversation(ctx, posthorn.Open{Creator: "ana", Cmid: "demo-direct", Kind: posthorn.Direct, Members: []string{"bo"}, AsServer: true})
	if err != nil {
		return err
	}
	_, err = s.OpenConversation(ctx, posthorn.Open{Conv: "lobby", Cmid: "demo-lobby", Kind: posthorn.Group, Title: "Lobby",
		Members: []string{"ana", "bo"}, History: "all", AsServer: true})
	return err
}
