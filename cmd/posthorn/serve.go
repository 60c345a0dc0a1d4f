package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/posthorn/posthorn"
	"github.com/posthorn/posthorn/internal/bell"
)

type serveCmd struct {
	databaseFlags
	logFlags
	Listen      string        `help:"Address for HTTP and WebSocket; port 0 takes a free one." default:"127.0.0.1:8080"`
	PgBin       string        `help:"Folder with PostgreSQL's programs for the private database." placeholder:"DIR"`
	Doorbell    string        `help:"How sends wake other gateways: notify (LISTEN) or poll." enum:"notify,poll" default:"notify"`
	Channel     string        `help:"Channel of the doorbell, at most 63 bytes." default:"im_events"`
	Sweep       time.Duration `help:"How often devices that lag get a hint; 0 switches it off. IM_SWEEP_MS is understood." default:"5s"`
	TailPollMax time.Duration `help:"Longest interval of the poll behind the doorbell." default:"1s"`
	Lease       time.Duration `help:"A gateway that is without the database for two thirds of it suspends its sockets." default:"15s"`
	Origins     []string      `help:"Pages of other origins that may connect (scheme://host[:port])." placeholder:"ORIGIN"`
	Compression bool          `help:"Accept permessage-deflate."`
	ReadyFile   string        `help:"Write the server's URL here once it is ready." placeholder:"FILE"`
	Dev         bool          `help:"Sign-in by name and a demo conversation, on loopback only."`

	AdminKey     string `help:"The first admin key; give it as POSTHORN_ADMIN_KEY." placeholder:"KEY"`
	JwtSecret    string `help:"Accept JWTs signed with this secret (HS256, at least 32 bytes)." placeholder:"SECRET"`
	JwtPublicKey string `help:"Accept JWTs signed with the Ed25519 key in this file (PEM or JWK)." placeholder:"FILE"`
	JwtJwks      string `help:"Accept JWTs signed with a key of this set (file or https URL)." placeholder:"SOURCE"`
	JwtIssuer    string `help:"The iss that a JWT must have."`
	JwtAudience  string `help:"The aud that a JWT must have."`
}

func (c *serveCmd) Run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	log := c.logger()
	s, err := startServer(ctx, c, log)
	if err != nil {
		return err
	}
	log.Info("ready", "url", s.url(), "gateway", s.gatewayID)
	if c.ReadyFile != "" {
		if err := writeSecret(c.ReadyFile, s.url()+"\n"); err != nil {
			return errors.Join(err, s.stop(c.limits().Drain))
		}
	}
	if c.Dev {
		fmt.Fprintf(os.Stderr, "\n  Posthorn is at %s\n  In two other terminals:  posthorn chat --as ana   and   posthorn chat --as bo\n\n", s.url())
	}
	select {
	case <-ctx.Done():
		log.Info("draining")
		return s.stop(c.limits().Drain)
	case err := <-s.failed:
		return errors.Join(err, s.stop(c.limits().Drain))
	}
}

func (c *serveCmd) check() error {
	if c.Dev && !loopback(c.Listen) {
		return errors.New("--dev signs in anybody by name: it listens on loopback only, as --listen 127.0.0.1:8080")
	}
	if err := bell.CheckChannel(c.Channel); err != nil {
		return fmt.Errorf("--channel: %w", err)
	}
	if c.Sweep < 0 || c.TailPollMax <= 0 {
		return errors.New("--sweep and --tail-poll-max must not be negative")
	}
	if c.Lease < 500*time.Millisecond {
		return errors.New("--lease must be at least 500ms")
	}
	if ms := os.Getenv("IM_SWEEP_MS"); ms != "" {
		n, err := strconv.ParseUint(ms, 10, 31)
		if err != nil {
			return errors.New("IM_SWEEP_MS is a number of milliseconds")
		}
		c.Sweep = time.Duration(n) * time.Millisecond
	}
	return nil
}

func (c *serveCmd) limits() posthorn.Limits {
	l := posthorn.DefaultLimits()
	l.SweepInterval = c.Sweep
	l.TailPollMax = c.TailPollMax
	l.GatewayLease, l.GatewayBeat = c.Lease, c.Lease/5
	l.TailPollMin = min(l.TailPollMin, l.TailPollMax)
	return l
}

// loopback tells whether an address to listen on is reached from this machine only. A name is not looked up.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// logged keeps the first error of a shutdown and writes the others.
func logged(log *slog.Logger, what string, err error) {
	if err != nil {
		log.Warn("shutdown", "part", what, "error", err)
	}
}
