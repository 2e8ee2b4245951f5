package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// ClientTLS says how clients may encrypt. Without a certificate they cannot.
type ClientTLS struct {
	Certificate, Key string // PEM files
	// ClientCA is a PEM file of authorities: a client that shows a certificate
	// must show one that they signed. Empty asks for none.
	ClientCA   string
	MinVersion string // 1.2 or 1.3
	Required   bool   // refuses clients that do not encrypt
}

func (t ClientTLS) validate() error {
	var faults []error
	if (t.Certificate == "") != (t.Key == "") {
		faults = append(faults, errors.New("tls-certificate and tls-key: one is missing"))
	}
	if t.Certificate == "" && (t.Required || t.ClientCA != "") {
		faults = append(faults,
			errors.New("tls-certificate: is needed by tls-required and tls-client-ca"))
	}
	if versions[t.MinVersion] == 0 {
		faults = append(faults, fmt.Errorf("tls-min-version: %q is neither 1.2 nor 1.3", t.MinVersion))
	}
	return errors.Join(faults...)
}

var versions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

// alpn is the protocol that PostgreSQL's clients name in a direct TLS handshake
// (PostgreSQL, chapter "SSL Session Encryption").
const alpn = "postgresql"

// load reads the files, nil for none.
func (t ClientTLS) load() (*tls.Config, error) {
	if t.Certificate == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tls-certificate: %w", err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: versions[t.MinVersion],
		NextProtos: []string{alpn},
	}
	if t.ClientCA != "" {
		if config.ClientCAs, err = readAuthorities(t.ClientCA); err != nil {
			return nil, fmt.Errorf("tls-client-ca: %w", err)
		}
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return config, nil
}

func readAuthorities(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", path)
	}
	return pool, nil
}

// TLSMode is how far the connection to PostgreSQL is protected, by the names
// of libpq's sslmode.
type TLSMode string

// The modes: no encryption; encryption with whoever answers; with somebody
// whose certificate an authority signed; with the host that was dialled.
const (
	TLSDisable    TLSMode = "disable"
	TLSRequire    TLSMode = "require"
	TLSVerifyCA   TLSMode = "verify-ca"
	TLSVerifyFull TLSMode = "verify-full"
)

// UpstreamTLS says how PostgreSQL is reached.
type UpstreamTLS struct {
	Mode TLSMode
	CA   string // PEM file of authorities; empty for the system's
	// Certificate and Key are PEM files shown to PostgreSQL; empty for none.
	Certificate, Key string
}

func (t UpstreamTLS) validate() error {
	var faults []error
	switch t.Mode {
	case TLSDisable, TLSRequire, TLSVerifyCA, TLSVerifyFull:
	default:
		faults = append(faults, fmt.Errorf("upstream-tls: %q is none of disable, require, verify-ca, "+
			"verify-full", t.Mode))
	}
	if (t.Certificate == "") != (t.Key == "") {
		faults = append(faults, errors.New("upstream-certificate and upstream-key: one is missing"))
	}
	return errors.Join(faults...)
}

// load reads the files, nil where the mode is disable. The name of the host is left open.
func (t UpstreamTLS) load() (*tls.Config, error) {
	if t.Mode == TLSDisable {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{alpn}}
	var err error
	if t.CA != "" {
		if config.RootCAs, err = readAuthorities(t.CA); err != nil {
			return nil, fmt.Errorf("upstream-ca: %w", err)
		}
	}
	if t.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, fmt.Errorf("upstream-certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if t.Mode == TLSVerifyFull {
		return config, nil
	}
	config.InsecureSkipVerify = true // replaced by what the mode asks for
	if t.Mode == TLSVerifyCA {
		config.VerifyConnection = func(s tls.ConnectionState) error { return signed(s, config.RootCAs) }
	}
	return config, nil
}

// signed checks a chain of certificates, whatever host it was made for.
func signed(s tls.ConnectionState, roots *x509.CertPool) error {
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(options)
	return err
}
