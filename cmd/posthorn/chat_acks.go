package main

import (
	"context"
	"sync"

	tea "charm.land/bubbletea/v2"
)

// chatAcks brings what the server says that it has stored from the client's goroutine, which must not wait, to the screen.
type chatAcks struct {
	bell chan struct{} // 1
	mu   sync.Mutex    // guards told
	told map[string]int64
}

// chatAcked is the message that it makes.
type chatAcked map[string]int64

func newChatAcks() *chatAcks {
	return &chatAcks{bell: make(chan struct{}, 1), told: map[string]int64{}}
}

func (a *chatAcks) put(conv string, delivered int64) {
	a.mu.Lock()
	a.told[conv] = delivered
	a.mu.Unlock()
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

func (a *chatAcks) next(ctx context.Context) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-a.bell:
		case <-ctx.Done():
			return nil
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		told := chatAcked(a.told)
		a.told = map[string]int64{}
		return told
	}
}
