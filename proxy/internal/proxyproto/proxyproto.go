// Package proxyproto reads the header by which a balancer tells a client's address (HAProxy, The
// PROXY protocol, versions 1 and 2).
package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
)

// relayed is a connection that a balancer passed on, with the client's address.
type relayed struct {
	net.Conn
	client net.Addr
}

func (r *relayed) RemoteAddr() net.Addr { return r.client }

// errProxyHeader ends a connection without a proper header.
var errProxyHeader = errors.New("malformed PROXY header")

// Of the PROXY protocol: the signature of version 2, and the longest header of
// version 1.
const (
	proxySignature = "\r\n\r\n\x00\r\nQUIT\n"
	maxProxyLine   = 107
)

// Read reads a header of version 1 or 2 (HAProxy, The PROXY
// protocol) and nothing behind it.
func Read(conn net.Conn) (net.Conn, error) {
	head := make([]byte, len(proxySignature), maxProxyLine)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	if string(head) == proxySignature {
		return readProxyBinary(conn)
	}
	if !bytes.HasPrefix(head, []byte("PROXY ")) {
		return nil, errProxyHeader
	}
	for head[len(head)-1] != '\n' {
		if len(head) == maxProxyLine {
			return nil, errProxyHeader
		}
		head = head[:len(head)+1]
		if _, err := io.ReadFull(conn, head[len(head)-1:]); err != nil {
			return nil, err
		}
	}
	return proxyLine(conn, string(head))
}

// proxyLine is version 1: PROXY TCP4 SOURCE DESTINATION SOURCEPORT PORT.
func proxyLine(conn net.Conn, line string) (net.Conn, error) {
	line, ok := strings.CutSuffix(line, "\r\n")
	fields := strings.Split(line, " ")
	if !ok || len(fields) < 2 {
		return nil, errProxyHeader
	}
	if fields[1] == "UNKNOWN" {
		return conn, nil
	}
	if len(fields) != 6 || fields[1] != "TCP4" && fields[1] != "TCP6" {
		return nil, errProxyHeader
	}
	ip := net.ParseIP(fields[2])
	port, err := strconv.ParseUint(fields[4], 10, 16)
	if ip == nil || err != nil {
		return nil, errProxyHeader
	}
	return &relayed{conn, &net.TCPAddr{IP: ip, Port: int(port)}}, nil
}

// readProxyBinary is version 2, behind the signature.
func readProxyBinary(conn net.Conn) (net.Conn, error) {
	var head [4]byte // version and command, family and protocol, length
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint16(head[2:]))
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, err
	}
	const local, proxied, tcp4, tcp6 = 0x20, 0x21, 0x11, 0x21
	size := 0
	switch {
	case head[0] == local:
		return conn, nil // the balancer's own check
	case head[0] != proxied:
		return nil, errProxyHeader
	case head[1] == tcp4:
		size = net.IPv4len
	case head[1] == tcp6:
		size = net.IPv6len
	default:
		return conn, nil
	}
	if len(body) < 2*size+4 {
		return nil, errProxyHeader
	}
	port := binary.BigEndian.Uint16(body[2*size:])
	return &relayed{conn, &net.TCPAddr{IP: net.IP(body[:size]), Port: int(port)}}, nil
}
