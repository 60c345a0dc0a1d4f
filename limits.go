package posthorn

import (
	"fmt"
	"time"
)

// Limits are the bounds and intervals in force. Each is explained in LimitTable, from which docs/limits.md is made.
type Limits struct {
	IDBytes        int
	CmidBytes      int
	TitleBytes     int
	BodyBytes      int
	FrameIn        int
	FrameOut       int
	PageBytes      int
	PageEvents     int
	PageDefault    int
	Depth          int
	ConfirmPairs   int
	GroupMembers   int
	ChannelMembers int
	AddUsers       int

	LoginDeadline time.Duration
	Heartbeat     time.Duration
	MissedBeats   int
	WriteDeadline time.Duration
	OutFrames     int
	OutBytes      int
	InFlight      int

	SendQueue      int
	SendQueueBytes int
	BatchSends     int
	BatchBytes     int
	LockTimeout    time.Duration
	LaneDeadline   time.Duration
	BatchDeadline  time.Duration
	AckQueue       int

	SweepInterval time.Duration
	SweepGrace    time.Duration
	HoldGap       time.Duration
	HubBuffer     int
	AckFlush      time.Duration
	AckStretched  time.Duration
	AckedDelay    time.Duration
	TailPollMin   time.Duration
	TailPollMax   time.Duration
	FoldInterval  time.Duration

	GatewayLease time.Duration
	GatewayBeat  time.Duration
	TailKeep     time.Duration
	ConsumerKeep time.Duration

	Drain          time.Duration
	Connections    int
	ReconnectMax   time.Duration
	RequestTimeout time.Duration
	AckEvery       int
	AckAfter       time.Duration
}

// DefaultLimits returns the defaults of LimitTable.
func DefaultLimits() Limits {
	return Limits{
		IDBytes: 128, CmidBytes: 64, TitleBytes: 512, BodyBytes: 64 << 10,
		FrameIn: 256 << 10, FrameOut: 1 << 20, PageBytes: 1 << 20, PageEvents: 500, PageDefault: 100, Depth: 64,
		ConfirmPairs: 64, GroupMembers: 10_000, ChannelMembers: 1_000_000, AddUsers: 500,
		LoginDeadline: 10 * time.Second, Heartbeat: 25 * time.Second, MissedBeats: 2, WriteDeadline: 10 * time.Second,
		OutFrames: 256, OutBytes: 1 << 20, InFlight: 64,
		SendQueue: 8192, SendQueueBytes: 64 << 20, BatchSends: 256, BatchBytes: 4 << 20,
		LockTimeout: 50 * time.Millisecond, LaneDeadline: 10 * time.Second, BatchDeadline: 30 * time.Second, AckQueue: 65536,
		SweepInterval: 5 * time.Second, SweepGrace: 300 * time.Millisecond, HoldGap: time.Second, HubBuffer: 4096,
		AckFlush: 30 * time.Millisecond, AckStretched: 2 * time.Second, AckedDelay: 150 * time.Millisecond,
		TailPollMin: 20 * time.Millisecond, TailPollMax: time.Second, FoldInterval: 5 * time.Second,
		GatewayLease: 15 * time.Second, GatewayBeat: 3 * time.Second, TailKeep: time.Hour, ConsumerKeep: 24 * time.Hour,
		Drain: 10 * time.Second, Connections: 10, ReconnectMax: 10 * time.Second, RequestTimeout: 10 * time.Second,
		AckEvery: 4, AckAfter: 200 * time.Millisecond,
	}
}

// Limit is one line of the limits reference.
type Limit struct {
	Name    string
	Value   string
	AtBound string // what happens at the bound, or what the interval is for
}

// LimitTable is the one place that explains the limits; docs/limits.md is generated from it.
func (l Limits) LimitTable() []Limit {
	return []Limit{
		{"id bytes (conv, user, device, rid)", fmt.Sprintf("%d; rid and cmid %d", l.IDBytes, l.CmidBytes), "`BAD_FRAME`"},
		{"title bytes", bytesText(l.TitleBytes), "`TOO_LARGE`"},
		{"body + data", bytesText(l.BodyBytes), "`TOO_LARGE`; counted in bytes of UTF-8"},
		{"frame in", bytesText(l.FrameIn), "close 1009; counts the reassembled, inflated message"},
		{"frame out", bytesText(l.FrameOut), "never exceeded: pages end earlier"},
		{"page", fmt.Sprintf("%s, %d events (%d where `limit` is absent)", bytesText(l.PageBytes), l.PageEvents, l.PageDefault), "`more`; a larger `limit` counts as the maximum"},
		{"depth of a frame", fmt.Sprint(l.Depth), "`BAD_FRAME`"},
		{"pairs in one `confirm`", fmt.Sprint(l.ConfirmPairs), "`BAD_FRAME`"},
		{"members of a group / of a channel / in one `open`, `add` or `remove`", fmt.Sprintf("%d / %d / %d", l.GroupMembers, l.ChannelMembers, l.AddUsers), "`TOO_LARGE`"},
		{"login deadline", l.LoginDeadline.String(), "close"},
		{"heartbeat / missed heartbeats", fmt.Sprintf("%s / %d", l.Heartbeat, l.MissedBeats), "close"},
		{"write deadline", l.WriteDeadline.String(), "`bye SLOW_CONSUMER`, close"},
		{"out queue per socket", fmt.Sprintf("%d frames and %s", l.OutFrames, bytesText(l.OutBytes)), "pushes are dropped, the device is marked lagging and gets a `hint` with `why:\"overflow\"`"},
		{"requests in flight per connection", fmt.Sprint(l.InFlight), "reading pauses"},
		{"send queue per gateway", fmt.Sprintf("%d and %s", l.SendQueue, bytesText(l.SendQueueBytes)), "`UNAVAILABLE` with `retry_ms` at once"},
		{"batch", fmt.Sprintf("%d sends and %s", l.BatchSends, bytesText(l.BatchBytes)), "the rest goes into the next batch"},
		{"wait for a conversation's lock in the batch / in the second lane", fmt.Sprintf("%s / %s", l.LockTimeout, l.LaneDeadline), "second lane / `UNAVAILABLE`"},
		{"answer of PostgreSQL to a batch", l.BatchDeadline.String(), "the outcome is unknown: nothing is answered, the connection is replaced"},
		{"acks waiting per gateway", fmt.Sprint(l.AckQueue), "`UNAVAILABLE` where the ack has a `rid`; the sweep asks again"},
		{"sweep interval", l.SweepInterval.String() + " (`--sweep`, `IM_SWEEP_MS`; 0 switches it off)", "devices that lag get one `hint` an interval"},
		{"sweep grace", l.SweepGrace.String(), "a device that lags for less is left alone"},
		{"wait for a missing seq in the fan-out", l.HoldGap.String(), "replies and pushes behind it go out; the client's gap rule repairs"},
		{"events buffered per conversation while it loads", fmt.Sprint(l.HubBuffer), "dropped; the device is marked lagging"},
		{"ack flush", l.AckFlush.String() + ", stretched to " + l.AckStretched.String() + " while old transactions hold back pruning", "`acked` is written after it; without traffic at the latest " + l.AckedDelay.String() + " later"},
		{"tail poll", l.TailPollMin.String() + "–" + l.TailPollMax.String() + ", adaptive (`--tail-poll-max`)", "behind the doorbell"},
		{"fold of conversation heads", l.FoldInterval.String(), "held back while old transactions are open"},
		{"audit of heads and cursors", "every 10 sweeps", "what the tail or the lag set missed is pushed or hinted, counted and alarmed"},
		{"gateway lease / heartbeat", l.GatewayLease.String() + " (`--lease`) / a fifth of it", "without the database for two thirds of the lease a gateway suspends: no pushes, no acks, `UNAVAILABLE`; sockets stay"},
		{"new timeline of the database", "at most one lease", "hello and send get `UNAVAILABLE` until the gateways have compared it with what they have seen"},
		{"epoch that a client presents", "the database's time in ms + 1 day; one an installation in 10 min", "not believed / the next ones are served in the epoch in force, and heard when the time is over"},
		{"log tail kept", l.TailKeep.String() + ", behind a named consumer up to " + l.ConsumerKeep.String(), "a gateway that was away for longer compares heads; `since` of an older list gives the whole list"},
		{"hellos waiting per gateway / in one transaction", "8192 / 256", "`UNAVAILABLE` / the rest goes into the next one"},
		{"drain on SIGTERM", l.Drain.String(), "exit 0; a second signal ends at once"},
		{"connections to PostgreSQL per gateway", fmt.Sprintf("%d + listener + notifier", l.Connections), "wait, then `UNAVAILABLE`"},
		{"reconnect spread told by `reconnect_ms`", "random up to " + l.ReconnectMax.String(), "grows with the number of sockets"},
		{"request timeout in the SDK", l.RequestTimeout.String(), "the item stays in the outbox and is sent again"},
		{"SDK acks", fmt.Sprintf("every %d events or %s", l.AckEvery, l.AckAfter), ""},
	}
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
