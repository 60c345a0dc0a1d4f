// Package wire turns frames into bytes and back: one JSON object per WebSocket text frame, as docs/protocol.md says.
//
// Decoding of what a client sent is strict (exact names, no repeated field at any depth, no lone surrogate, no U+0000,
// integers only, bounded depth); decoding of what a server sent ignores what it does not know. data travels as the bytes
// that came. The package imports the root and a JSON library, starts no goroutine and keeps no state.
package wire
