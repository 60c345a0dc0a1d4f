package client

import (
	"time"

	"github.com/posthorn/posthorn/wire"
)

// Direction of a frame as the client sees it.
type Direction int

const (
	In Direction = iota + 1
	Out
)

// Tracer watches a client. Its methods are called by several goroutines, must be quick, and must not call the client.
type Tracer interface {
	// Frame is called for every frame, before it is written or after it was read. raw must not be changed or kept; it is
	// nil for hello, whose token is taken out.
	Frame(d Direction, f wire.Frame, raw []byte)

	// Stored is called after the commit of a burst that held events: how many became part of the contiguous logs, and how
	// long the transaction took, fsync included.
	Stored(events int, took time.Duration)

	// State is called when the connection's state changes.
	State(State)
}

// noTracer is the default.
type noTracer struct{}

func (noTracer) Frame(Direction, wire.Frame, []byte) {}
func (noTracer) Stored(int, time.Duration)           {}
func (noTracer) State(State)                         {}
