package proxy

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"net"
)

// channelBinding is the hash of the certificate that the client was shown
// (tls-server-end-point, RFC 5929 §4.1), nil where there is none to bind to.
func channelBinding(conn net.Conn) []byte {
	secure, ok := conn.(*secured)
	if !ok {
		return nil
	}
	switch secure.certificate.SignatureAlgorithm {
	case x509.SHA384WithRSA, x509.ECDSAWithSHA384, x509.SHA384WithRSAPSS:
		sum := sha512.Sum384(secure.certificate.Raw)
		return sum[:]
	case x509.SHA512WithRSA, x509.ECDSAWithSHA512, x509.SHA512WithRSAPSS:
		sum := sha512.Sum512(secure.certificate.Raw)
		return sum[:]
	case x509.PureEd25519:
		return nil // no hash is defined for it
	}
	sum := sha256.Sum256(secure.certificate.Raw)
	return sum[:]
}

// secured is a client's encrypted connection with the certificate that it was
// shown.
type secured struct {
	*tls.Conn
	certificate *x509.Certificate
}
