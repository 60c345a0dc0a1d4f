package bell

import "syscall"

// tcpUserTimeout is the socket option of that name in ms: how long written bytes may stay unacknowledged.
const tcpUserTimeout = 18

func control(network, _ string, c syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	var err error
	if cerr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(dead.Milliseconds()))
	}); cerr != nil {
		return cerr
	}
	return err
}
