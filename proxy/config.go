package proxy

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// Config says where the proxy listens and whom it serves.
type Config struct {
	Listen   string // HOST:PORT for clients
	Upstream string // HOST:PORT of PostgreSQL, or the path of its socket
	// StartupTimeout bounds the time from connection to completed login.
	StartupTimeout time.Duration
	// MaxClients bounds the number of connections, cancel requests included.
	MaxClients int
}

// DefaultConfig serves a PostgreSQL on this machine.
func DefaultConfig() Config {
	return Config{
		Listen: "127.0.0.1:6432", Upstream: "127.0.0.1:5432",
		StartupTimeout: 30 * time.Second, MaxClients: 1000,
	}
}

// Validate reports every fault.
func (c Config) Validate() error {
	var faults []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		faults = append(faults, fmt.Errorf("listen: %w", err))
	}
	if c.Upstream == "" {
		faults = append(faults, errors.New("upstream: is empty"))
	} else if c.Upstream[0] != '/' {
		if _, _, err := net.SplitHostPort(c.Upstream); err != nil {
			faults = append(faults, fmt.Errorf("upstream: %w", err))
		}
	}
	if c.StartupTimeout <= 0 {
		faults = append(faults, errors.New("start-up timeout: must be above 0"))
	}
	if c.MaxClients <= 0 {
		faults = append(faults, errors.New("clients: must be above 0"))
	}
	return errors.Join(faults...)
}

// network is the kind of address that Upstream is.
func (c Config) network() string {
	if c.Upstream[0] == '/' {
		return "unix"
	}
	return "tcp"
}
