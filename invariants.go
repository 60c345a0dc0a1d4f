package posthorn

// Invariant is a promise that the product keeps under every fault of its lab. Tests, lab checks and comments cite
// invariants by name; the text is the contract.
type Invariant struct {
	Name    string
	Promise string
	Watched string // where a checker looks
}

// The names are fixed: other documents, evidence files and tests refer to them.
const (
	D1 = "D1"
	D2 = "D2"
	D3 = "D3"
	D4 = "D4"
	D5 = "D5"
	D6 = "D6"
	P1 = "P1"
	O1 = "O1"
	V1 = "V1"
	R1 = "R1"
	I1 = "I1"
	G1 = "G1"
	E1 = "E1"
	X1 = "X1"
	B1 = "B1"
)

// Invariants lists every promise in the order of ARCHITECTURE.md.
func Invariants() []Invariant {
	return []Invariant{
		{D1, "when the sender has sent{seq}, the transaction holding the message has committed", "events"},
		{D2, "resending the same cmid after silence leaves exactly one event, and the reply says dup with the first seq, whatever has changed since", "events, reply"},
		{D3, "delivered moves only when the device confirms, and means: this device holds every visible event between its start mark and delivered", "device_cursors"},
		{D4, "within one epoch and install, delivered never falls and never passes the visible head", "device_cursors, events"},
		{D5, "a lost push, wherever it was lost (socket, hub, tail, doorbell), is noticed by the server and repaired within the bounds of the limits", "sweep, audit, cursors"},
		{D6, "what was acknowledged survives a crash of any process, of PostgreSQL, of the machine, and a failover to a synchronous standby", "row counts after recovery"},
		{P1, "a rolled-back or duplicate send takes no seq: floor..head has no hole", "events"},
		{O1, "a client applies events in seq order without a hole; paging under concurrent writes neither repeats nor skips", "client store"},
		{V1, "no path (push, sync, history, search, dup reply, counters, receipts, export, webhooks) shows a user an event that they may not see", "all readers"},
		{R1, "a user's read mark is one number for all their devices, never falls within an epoch, never passes the visible head", "read_cursors"},
		{I1, "a reinstalled or cloned device starts anew and the old install's frames are refused", "devices"},
		{G1, "after a gateway dies, its devices are served elsewhere with nothing lost; each device converges to one live connection", "routes"},
		{E1, "history that was rewound is noticed: nobody merges two histories under one epoch, and what clients hold as sent is offered again", "sequence_space, client store"},
		{X1, "no read that begins after a recall has committed, and no frame queued after its gateway has read the recall, carries the recalled body or an edit of it", "all readers"},
		{B1, "every queue is bounded in items and bytes; a slow reader costs itself pushes (then a hint), never memory or its neighbours' latency", "gateway"},
	}
}
