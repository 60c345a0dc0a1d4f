// Package posthorn holds the nouns of the messaging core (Event, Conversation, Membership, Device, Op), the ports
// through which the rooms are joined, and what the whole project agrees on: limits, error codes, the table of who may
// do what, and the invariants D1–B1.
//
// It imports the standard library only, so that every room may import it; it starts no goroutine and keeps no state.
// The way of a message through the rooms is told in ARCHITECTURE.md.
package posthorn
