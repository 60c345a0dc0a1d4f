package client

import "net/http"

// FakeServer lets the example run without a database.
func FakeServer() http.Handler {
	f := newFake()
	f.post("lobby", 2)
	return f
}
