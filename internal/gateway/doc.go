// Package gateway holds every WebSocket: it lets clients in, checks what they send, hands it to the store, and writes
// what the hub pushes. It decides admission, never durability: losing a gateway loses no message.
//
// The files are the steps of a frame's way: accept (origin, upgrade) → login (hello, welcome) → read → authorize
// (frame-level admission, one table of handlers) → send, ack, sync, subscribe → queue → flush → conn. heartbeat and
// drain end connections; log tells people about INTERNAL errors.
//
// Imports: the root's nouns and ports, wire, fault, the WebSocket library. Neither hub nor store: cmd joins them through
// the interfaces in config.go.
//
// # Goroutines
//
// Each socket has one reader and one writer, started by ServeHTTP, which then returns.
//
//   - The reader owns reading, login, and submitting requests. It stops reading while Limits.InFlight requests of its
//     socket are unanswered. It calls Hub.Register once and Hub.Unregister once.
//   - The writer owns everything that is written (the close frames that the library writes for the reader excepted) and
//     the end of the socket: whoever wants it closed says so by socket.end, and the writer writes what is left, bye and
//     close frame, closes the connection and then socket.done.
//   - Requests that wait for the database (sync, history, sub, members, open, confirm) have a goroutine each, started by
//     the reader, within the same budget, with a context that the end of the connection cancels.
//
// The gateway itself has two: beat (heartbeats of all sockets, and acked replies that found no push to go with) and
// complain (the only one that logs INTERNAL errors, so that no caller waits for a log).
//
// What the hub and the store call from their own goroutines (the methods of posthorn.Socket, the Done functions)
// takes one short lock, wakes the writer and returns.
//
// # What closes what
//
// socket.done is closed by the socket's writer. Gateway.quit is closed by the goroutine that Stop starts, once no socket
// is left. queue.wake, the slots and the hellos are never closed.
//
// # Memory of one connection
//
// Pushes: OutFrames and OutBytes, counted until they are written. Replies: each request keeps its slot until its reply
// is written, and at most pageReads of them hold a page, so a client that asks without reading stops being read. Hints
// and acked: one per conversation. In: one message of FrameIn, reassembled and inflated.
//
// # Shutdown
//
// Stop: new handshakes get 503 → new requests get UNAVAILABLE → each socket says bye SHUTTING_DOWN as soon as its writing
// requests are answered, or when half of the budget is used → close handshake, at most a second → all goroutines of the
// sockets end → quit → beat and complain end → Stop returns. A second Stop, or the end of the context, cuts the
// connections and returns.
package gateway
