package main

import (
	"github.com/posthorn/posthorn/internal/telemetry"
)

// readings gathers what the rooms count.
func (s *server) readings() []telemetry.Reading {
	var all []telemetry.Reading
	level := func(name, help string, v float64) {
		all = append(all, telemetry.Reading{Name: name, Help: help, Value: v})
	}
	count := func(name, help string, v float64) {
		all = append(all, telemetry.Reading{Name: name + "_total", Help: help, Kind: telemetry.Count, Value: v})
	}
	for _, c := range s.Conditions() {
		all = append(all, telemetry.Reading{Name: "ready", Help: "Whether a condition of /readyz holds.", Value: truth(c.OK), Label: "condition", Of: c.Name})
	}
	st := s.store.Stats()
	level("epoch", "The epoch in force; it changes when history was rewound.", float64(s.store.Epoch()))
	level("suspended", "Whether this gateway has lost the database and serves nobody.", truth(s.store.Suspended()))
	level("sends_queued", "Sends that wait for a batch.", float64(st.Queued))
	count("sent", "Messages committed by this process.", float64(st.Sent))
	count("batches", "Transactions that committed them.", float64(st.Batches))
	count("sends_unknown", "Sends whose outcome stayed unknown; nothing was answered.", float64(st.Unknown))
	count("acks", "Cursors written.", float64(st.Acks))
	count("tail_errors", "Readings of the log that failed.", float64(st.TailErrors))
	count("tail_repaired", "Conversations that were read by their head, after a crash or a trimmed tail.", float64(st.Repaired))
	count("audit_conversations", "Conversations in which the audit found what the tail had not brought. Should stay 0.", float64(st.Audited))
	count("audit_cursors", "Devices of which the audit found that they lag. Should stay 0.", float64(st.Corrected))
	count("epoch_renewals", "New epochs begun by this process: history was rewound.", float64(st.Renewals))
	count("older_primary_refused", "Connections to an older primary that were refused.", float64(st.Refused))
	count("suspensions", "How often the database was away for two thirds of the lease.", float64(st.Suspensions))
	count("doorbell_reconnects", "Listening connections after the first.", float64(st.Reconnects))
	count("doorbell_junk", "Notifications that were no bell.", float64(st.Junk))
	level("notification_queue_usage", "How full PostgreSQL's notification queue is, 0 to 1. Above 0.75 sends go without the bell.", st.QueueUsage)

	hub := s.hub.Stats()
	level("conversations", "Conversations with a member connected here.", float64(hub.Conversations))
	level("users", "Users connected here.", float64(hub.Users))
	level("lagging", "Cursors that are behind what was pushed.", float64(hub.Lagging))
	level("events_held", "Events that wait for one before them.", float64(hub.Held))
	count("hints", "Hints given to devices that lag.", float64(hub.Hints))
	count("overflows", "Pushes that found no room.", float64(hub.Overflows))
	count("gaps_expired", "Gaps in a conversation that were not waited for any longer.", float64(hub.Expired))
	count("view_reloads", "Readings of memberships that failed and were tried again.", float64(hub.Reloads))

	gw := s.gateway.Stats()
	level("sockets", "Open connections.", float64(gw.Sockets))
	level("sessions", "Open connections that have said hello.", float64(gw.Sessions))
	count("sockets_accepted", "Connections upgraded.", float64(gw.Accepted))
	count("sockets_refused", "Handshakes refused.", float64(gw.Refused))
	count("frames_in", "Frames received.", float64(gw.FramesIn))
	count("frames_out", "Frames written.", float64(gw.FramesOut))
	count("bytes_out", "Bytes of frames written.", float64(gw.BytesOut))
	count("pushes_dropped", "Pushes dropped for a full queue.", float64(gw.PushesDropped))
	count("sockets_slow", "Connections closed because they did not read.", float64(gw.SlowClosed))
	count("sockets_silent", "Connections closed because they did not answer.", float64(gw.SilentClosed))
	count("internal_errors", "Requests answered INTERNAL.", float64(gw.InternalErrors))
	return all
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
