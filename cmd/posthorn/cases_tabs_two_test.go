package main

import (
	"fmt"
	"testing"

	"github.com/posthorn/posthorn/internal/pgtest"
)

// The same over two gateways: the newer hello wins wherever it was said, and the older one is told by the log's signals.
func TestB73_TabsOnTwoGateways(t *testing.T) {
	one := serve(t, pgtest.URL(t))
	both := []*node{one, serve(t, one.url)}
	for _, count := range []int{2, 10} {
		t.Run(fmt.Sprintf("%d sockets", count), func(t *testing.T) { tabSockets(t, both, count) })
		t.Run(fmt.Sprintf("%d tabs", count), func(t *testing.T) { tabDevices(t, both, count, false) })
	}
	t.Run("a duplicated tab", func(t *testing.T) { tabDevices(t, both, 2, true) })
}
