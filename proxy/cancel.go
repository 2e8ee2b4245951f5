package proxy

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
)

// cancelKey is what a client must show to cancel a query of its session. Keys
// are the proxy's own: the server's never reach a client.
type cancelKey struct{ process, secret uint32 }

// cancels maps keys to those of the server.
type cancels struct {
	mu   sync.Mutex
	keys map[cancelKey][]byte
}

// register draws a key for a session.
func (c *cancels) register(server []byte) cancelKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		b := randomBytes(8)
		key := cancelKey{binary.BigEndian.Uint32(b) >> 1, binary.BigEndian.Uint32(b[4:])}
		if _, taken := c.keys[key]; !taken {
			c.keys[key] = server
			return key
		}
	}
}

func (c *cancels) forget(key cancelKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, key)
}

// find returns the server's key for what a cancel request shows, nil if none.
func (c *cancels) find(shown []byte) []byte {
	if len(shown) != 8 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys[cancelKey{binary.BigEndian.Uint32(shown), binary.BigEndian.Uint32(shown[4:])}]
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the process instead
	return b
}
