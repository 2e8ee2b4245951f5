package proxyproto

import (
	"io"
	"net"
	"testing"
)

func TestProxyHeadersThatLieAreRefused(t *testing.T) {
	for header, want := range map[string]string{
		"PROXY TCP4 192.0.2.7 192.0.2.1 5555 5432\r\n":     "192.0.2.7:5555",
		"PROXY TCP6 2001:db8::7 2001:db8::1 5555 5432\r\n": "[2001:db8::7]:5555",
		"PROXY UNKNOWN what ever\r\n":                      "pipe",
		"PROXY TCP4 192.0.2.7 192.0.2.1 x 5432\r\n":        "",
		"PROXY TCP4 nowhere 192.0.2.1 5555 5432\r\n":       "",
		"GET / HTTP/1.1\r\n\r\n":                           "",
		"PROXY TCP4 " + string(make([]byte, 200)):          "",
		proxySignature + "\x20\x00\x00\x00":                "pipe",
		proxySignature + "\x21\x11\x00\x02ab":              "",
		proxySignature + "\x31\x11\x00\x00":                "",
	} {
		client, server := net.Pipe()
		go func() {
			_, _ = io.WriteString(client, header)
			_ = client.Close()
		}()
		conn, err := Read(server)
		got := ""
		if err == nil {
			got = conn.RemoteAddr().String()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
		_ = server.Close()
	}
}
