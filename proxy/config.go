package proxy

import (
	"errors"
	"fmt"
	"math"
	"net"
	"time"
)

// Config says where the proxy listens and whom it serves. Zero durations and
// numbers are off only where that is said.
type Config struct {
	Listen   string // HOST:PORT for clients
	Upstream string // HOST:PORT of PostgreSQL, or the path of its socket
	// UpstreamReaders are hot standbys, given as Upstream is, at which readers' sessions are by
	// turns. Where none serves, they are at Upstream.
	UpstreamReaders []string

	TLS         ClientTLS
	UpstreamTLS UpstreamTLS
	// Authentication is how clients prove who they are.
	Authentication Authentication

	// Pool is what sessions share; PoolTransaction needs MaxUpstream.
	Pool Pooling
	// Peers are the other proxies behind the same balancer.
	Peers Peers

	// StartupTimeout bounds the time from connection to completed login.
	StartupTimeout time.Duration
	// MaxClients bounds the number of sessions, MaxClientsOfPrincipal that of
	// one role's; 0 for as many as MaxClients.
	MaxClients            int
	MaxClientsOfPrincipal int
	// MaxUpstream bounds the connections to PostgreSQL on behalf of clients, kept
	// ones included; 0 for no bound of its own.
	MaxUpstream int
	// QueueTimeout is how long a client waits for a session to become free
	// before it is refused with 53300.
	QueueTimeout time.Duration
	// IdleTimeout ends sessions that have asked nothing for so long and are in
	// no transaction; 0 never does.
	IdleTimeout time.Duration
	// DrainTimeout is how long transactions may go on when the proxy ends.
	DrainTimeout time.Duration
	// ReuseTimeout is how long the server's side of a session that ended well
	// is kept for the next client of the same role; 0 for not at all.
	ReuseTimeout time.Duration
	// KeepAlive is how long a connection may be silent before it is probed.
	KeepAlive time.Duration
	// ProxyProtocol says that each connection begins with a PROXY header, from
	// a balancer that nobody can go round.
	ProxyProtocol bool
	// Terminals are the programs, by application_name, that show people labels unless
	// they ask for something else; others get values.
	Terminals []string
	// WrongPasswordPause is how long the answer to a failed login takes.
	WrongPasswordPause time.Duration
}

// DefaultConfig serves a PostgreSQL on this machine.
func DefaultConfig() Config {
	return Config{
		Listen: "127.0.0.1:6432", Upstream: "127.0.0.1:5432",
		TLS: ClientTLS{MinVersion: "1.2"}, UpstreamTLS: UpstreamTLS{Mode: TLSDisable},
		Authentication: SCRAM, Pool: PoolSession,
		StartupTimeout: 30 * time.Second, MaxClients: 1000, QueueTimeout: 10 * time.Second,
		DrainTimeout: 10 * time.Second, ReuseTimeout: 15 * time.Second, KeepAlive: time.Minute,
		Terminals: []string{"psql", "pgcli", "usql"}, WrongPasswordPause: time.Second,
	}
}

// Validate reports every fault.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		fault("listen: %w", err)
	}
	for i, address := range append([]string{c.Upstream}, c.UpstreamReaders...) {
		name := "upstream"
		if i > 0 {
			name = "upstream-readers"
		}
		if address == "" {
			fault("%s: is empty", name)
		} else if network(address) == "tcp" {
			if _, _, err := net.SplitHostPort(address); err != nil {
				fault("%s: %w", name, err)
			}
		}
	}
	for name, d := range map[string]time.Duration{
		"startup-timeout": c.StartupTimeout,
		"keepalive":       c.KeepAlive,
	} {
		if d <= 0 {
			fault("%s: must be above 0", name)
		}
	}
	for name, d := range map[string]time.Duration{
		"queue-timeout": c.QueueTimeout, "idle-timeout": c.IdleTimeout, "drain-timeout": c.DrainTimeout,
		"upstream-reuse": c.ReuseTimeout, "wrong-password-pause": c.WrongPasswordPause,
	} {
		if d < 0 {
			fault("%s: must not be below 0", name)
		}
	}
	if c.MaxClients <= 0 {
		fault("max-clients: must be above 0")
	}
	switch {
	case c.Pool == PoolTransaction && c.MaxUpstream == 0:
		fault("pool: transaction needs max-upstream")
	case c.Pool != PoolSession && c.Pool != PoolTransaction:
		fault("pool: %q is neither session nor transaction", c.Pool)
	}
	if c.MaxUpstream < 0 {
		fault("max-upstream: must not be below 0")
	}
	if c.MaxClientsOfPrincipal < 0 {
		fault("max-clients-per-principal: must not be below 0")
	}
	faults = append(faults, c.TLS.validate(), c.UpstreamTLS.validate(), c.Authentication.validate(c),
		c.Peers.validate())
	return errors.Join(faults...)
}

// upstreamLimit is the number of connections to PostgreSQL that clients may have.
func (c Config) upstreamLimit() int {
	if c.MaxUpstream == 0 {
		return math.MaxInt
	}
	return c.MaxUpstream
}

// connectionsOfPrincipal is the number of connections to PostgreSQL that sessions
// of one role may have.
func (c Config) connectionsOfPrincipal() int {
	if c.MaxClientsOfPrincipal == 0 {
		return math.MaxInt
	}
	return c.MaxClientsOfPrincipal
}

// network is the kind of address that a server has.
func network(address string) string {
	if address[0] == '/' {
		return "unix"
	}
	return "tcp"
}
