package bell

import (
	"context"
	"net"
	"time"
)

// dead is how long a host may be silent before its connections count as broken: after a failover nobody closes them.
const dead = 15 * time.Second

// Dial opens a connection to the database that notices a dead host. It is pgconn's DialFunc.
func Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Control: control, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 2}}
	return d.DialContext(ctx, network, addr)
}
