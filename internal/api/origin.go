package api

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// checkOrigins refuses entries that no browser's Origin could equal, so that a mistake shows at start.
func checkOrigins(entries []string) (map[string]bool, error) {
	origins := map[string]bool{}
	for _, e := range entries {
		u, err := url.Parse(e)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || e != u.Scheme+"://"+u.Host || e != strings.ToLower(e) ||
			strings.Contains(e, "*") || (u.Port() == "80" && u.Scheme == "http") || (u.Port() == "443" && u.Scheme == "https") {
			return nil, fmt.Errorf("allowed origin %q: want scheme://host or scheme://host:port in lower case, without the scheme's default port", e)
		}
		origins[e] = true
	}
	return origins, nil
}

// crossOrigin lets pages of the allowed origins read answers (CORS). Scheme, host and port must equal an entry byte for
// byte (B75). Others are not refused here: a call carries its credential in a header that no foreign page can add without
// a preflight, and the preflight is what they do not get.
func (s *Server) crossOrigin(next http.Handler) http.Handler {
	if len(s.origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		lines := r.Header.Values("Origin")
		if len(lines) != 1 || !s.origins[lines[0]] {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", lines[0])
		h.Set("Access-Control-Expose-Headers", "Retry-After")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromThisMachine tells whether the request was addressed to this machine by one of its own names and comes from no page,
// or from a page of this machine. The address that the connection came from proves nothing: a foreign page in a local
// browser connects from here too, by a name of its own that resolves to 127.0.0.1 (DNS rebinding).
func fromThisMachine(r *http.Request) bool {
	if !loopback(r.Host) || r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return false
	}
	lines := r.Header.Values("Origin")
	if len(lines) == 0 {
		return true
	}
	u, err := url.Parse(lines[0])
	return len(lines) == 1 && err == nil && (u.Scheme == "http" || u.Scheme == "https") && loopback(u.Host)
}

func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}
