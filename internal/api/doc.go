// Package api holds the HTTP calls below /api/v1, their OpenAPI document, health and readiness. It says nothing of its own
// about messages: calls become ops and reads of posthorn.Log, under the same rules as frames on a socket, and pages and
// lists leave in the bytes that a socket would get.
//
// The way of a call: serve (headers, log, panics) → origin (CORS) → miss (unknown call or method) → admit (who, which
// scope, are path, query and Idempotency-Key sound, is the body whole) → body (strict JSON) → the file named after the
// call → submit (wait for the commit) → answer or problem.
//
// huma describes the calls (schemas from the Go types below, OpenAPI 3.1) and binds them to net/http's ServeMux; its own
// decoding and validation are not used. They would lose what the protocol is strict about (repeated fields, null, -0,
// numbers that are rounded, the bytes of data), answer 422, and quote what was sent back to the sender.
//
// Imports: the root's nouns and ports, wire for the shapes of events, pages and entries, huma, and a JSON library that can
// be strict. Neither identity nor store: cmd joins them through the interfaces in ports.go.
//
// The package starts no goroutine. Each call runs on the server's own; a call that waits for a commit ends with its
// request or after the store's own deadlines, and the op's Done then finds nobody and is dropped. There is nothing to stop.
package api
