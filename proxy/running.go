package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// running is a configuration in force, with what its files held when it was
// loaded. It is immutable.
type running struct {
	Config
	tls         *tls.Config // towards clients; nil where it is not offered
	upstreamTLS *tls.Config // nil where PostgreSQL is reached without
	peers       peers
}

// load checks a configuration and reads its files; it reports every fault. alone
// is the secret of cancel keys where there are no peers.
func (c Config) load(alone []byte) (*running, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &running{Config: c}
	var faults [3]error
	r.tls, faults[0] = c.TLS.load()
	r.upstreamTLS, faults[1] = c.UpstreamTLS.load()
	r.peers, faults[2] = c.Peers.load(derived(alone, "tailor: cancel keys"))
	if err := errors.Join(faults[:]...); err != nil {
		return nil, err
	}
	return r, nil
}

// Reload puts a configuration in force for the connections that come from now
// on: certificates are read again. Where it has a fault everything stays as it
// is. The address of the listener cannot change.
func (p *Proxy) Reload(config Config) error {
	config.Listen = p.running.Load().Listen
	r, err := config.load(p.secret)
	if err != nil {
		return err
	}
	p.running.Store(r)
	p.clientLimiter.Resize(config.MaxClients, config.MaxClientsOfPrincipal)
	p.upstreamLimiter.Resize(config.upstreamLimit(), 0)
	p.idle.drop(anybodys) // it is of the configuration before
	return nil
}

// keepAlive finds a dead peer after twice the silence at the latest.
func keepAlive(silence time.Duration) net.KeepAliveConfig {
	const probes = 4
	return net.KeepAliveConfig{
		Enable: true, Idle: silence, Interval: max(time.Second, silence/probes),
		Count: probes,
	}
}

// probe sets that of a connection.
func probe(conn net.Conn, silence time.Duration) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(keepAlive(silence))
	}
}
