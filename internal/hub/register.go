package hub

import (
	"slices"

	"github.com/posthorn/posthorn"
)

// Register makes a connection known after its hello. A device has one live connection here: the newer hello wins and the
// older one is told REPLACED (G1). Every socket has a device.
func (h *Hub) Register(s posthorn.Socket) {
	v := s.Viewer()
	h.lock()
	defer h.unlock()
	if h.stopped {
		s.Close(posthorn.CodeShuttingDown)
		return
	}
	if h.foreign(v.Epoch) {
		s.Close(posthorn.CodeNewEpoch)
		return
	}
	if old := h.devices[v.DeviceID]; old != nil {
		if old.sock == s {
			return
		}
		if old.viewer.Generation > v.Generation { // this hello was the earlier one, and took longer
			s.Close(posthorn.CodeReplaced)
			return
		}
		h.detach(old)
		old.sock.Close(posthorn.CodeReplaced)
	}
	h.devices[v.DeviceID] = &conn{sock: s, viewer: v}
}

// Unregister forgets a connection that has ended. The late end of one that was replaced changes nothing.
func (h *Hub) Unregister(s posthorn.Socket) {
	h.lock()
	defer h.unlock()
	if c := h.conn(s); c != nil {
		h.detach(c)
	}
}

// Revoked closes the connection of a device with bye UNAUTHENTICATED. Nothing is pushed to it from here on.
func (h *Hub) Revoked(deviceID int64) {
	h.lock()
	defer h.unlock()
	if c := h.devices[deviceID]; c != nil {
		h.detach(c)
		c.sock.Close(posthorn.CodeUnauthenticated)
	}
}

// Replaced closes the connection of a device that has a newer one, here or elsewhere.
func (h *Hub) Replaced(deviceID, generation int64) {
	h.lock()
	defer h.unlock()
	if c := h.devices[deviceID]; c != nil && c.viewer.Generation < generation {
		h.detach(c)
		c.sock.Close(posthorn.CodeReplaced)
	}
}

// Devices lists who is connected here.
func (h *Hub) Devices() []posthorn.Viewer {
	h.lock()
	defer h.unlock()
	all := make([]posthorn.Viewer, 0, len(h.devices))
	for _, c := range h.devices {
		all = append(all, c.viewer)
	}
	return all
}

// NewEpoch closes everything: history may have been rewound, and what is known here belongs to another past (E1). What is
// still on its way from there is not taken any more, see Register and Deliver.
func (h *Hub) NewEpoch(epoch int64) {
	h.lock()
	defer h.unlock()
	if h.epoch == epoch {
		return
	}
	h.epoch = epoch
	h.closeAll(posthorn.CodeNewEpoch)
}

// foreign tells whether something belongs to another epoch; 0 stands for none.
func (h *Hub) foreign(epoch int64) bool { return epoch != 0 && h.epoch != 0 && epoch != h.epoch }

// CloseAll closes every connection and forgets what was known of conversations, so that after a new epoch all is read
// anew. New connections may register.
func (h *Hub) CloseAll(code posthorn.Code) {
	h.lock()
	defer h.unlock()
	h.closeAll(code)
}

func (h *Hub) closeAll(code posthorn.Code) {
	for _, c := range h.devices {
		h.detach(c)
		c.sock.Close(code)
	}
	h.recent.clear(h)
}

// conn finds the connection of a socket; nil when it has gone or was replaced.
func (h *Hub) conn(s posthorn.Socket) *conn {
	if c := h.devices[s.Viewer().DeviceID]; c != nil && c.sock == s {
		return c
	}
	return nil
}

// detach forgets a connection, whatever phase it is in.
func (h *Hub) detach(c *conn) {
	delete(h.devices, c.viewer.DeviceID)
	h.leaveUser(c)
	c.turn++
}

// joinUser puts a connection among those of its user.
func (h *Hub) joinUser(c *conn) {
	if c.user != nil {
		return
	}
	u := h.users[c.viewer.User]
	if u == nil {
		u = &user{name: c.viewer.User}
		h.users[u.name] = u
	}
	u.conns = append(u.conns, c)
	c.user = u
}

// leaveUser takes it out again: what waits for it is answered, and with the last connection of a user their memberships
// are forgotten.
func (h *Hub) leaveUser(c *conn) {
	u := c.user
	if u == nil {
		return
	}
	u.conns = slices.DeleteFunc(u.conns, func(x *conn) bool { return x == c })
	h.n.lagging -= len(c.lag)
	p := c.pend
	c.user, c.phase, c.live, c.pend, c.lag, c.marks = nil, registered, false, nil, nil, nil
	if p != nil {
		p.answer()
	}
	if len(u.conns) > 0 {
		return
	}
	delete(h.users, u.name)
	for _, m := range u.members {
		h.drop(m)
	}
}
