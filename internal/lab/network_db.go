package lab

import (
	"context"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
)

// cable is the network between one gateway and the database. PostgreSQL itself listens on a Unix socket only, so that no
// port can be found taken; where the cable leads can be changed, as an address that moves to another machine does.
type cable struct {
	*relay
	to atomic.Pointer[cluster]
}

// cable opens one.
func (t *trial) cable(c *cluster) *cable {
	w := &cable{}
	w.to.Store(c)
	w.relay = t.relay(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", w.to.Load().SocketPath())
	})
	return w
}

// lead has connections go to another cluster from now on; those that are open end.
func (w *cable) lead(c *cluster) {
	w.to.Store(c)
	w.cut()
}

// by has a gateway reach the database by cables: by the first one, or where there are several, by whichever takes writes.
func by(t *trial, cables ...*cable) setting {
	u, err := url.Parse(t.db.url)
	t.must(err)
	var hosts []string
	for _, w := range cables {
		hosts = append(hosts, w.addr)
	}
	u.Host = strings.Join(hosts, ",")
	q := url.Values{"sslmode": {"disable"}}
	if len(cables) > 1 {
		q.Set("target_session_attrs", "read-write")
	}
	u.RawQuery = q.Encode()
	return func(p *program) { p.env = append(p.env, "POSTHORN_DATABASE_URL="+u.String()) } // the last one counts
}
