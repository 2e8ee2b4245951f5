package proxy

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
)

// cancelKey is what a client must show to cancel a query of its session. Keys
// are the proxy's own: the server's never reach a client.
type cancelKey struct{ process, secret uint32 }

// cancels maps keys to the sessions that they cancel.
type cancels struct {
	mu   sync.Mutex
	keys map[cancelKey]cancelTarget
}

// cancelTarget is what a cancel request stops: the proxy's own work, or else
// the server's, under the key that the server gave.
type cancelTarget struct {
	work   *interrupts
	server []byte
}

// register draws a key for a session.
func (c *cancels) register(target cancelTarget) cancelKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		b := randomBytes(8)
		key := cancelKey{binary.BigEndian.Uint32(b) >> 1, binary.BigEndian.Uint32(b[4:])}
		if _, taken := c.keys[key]; !taken {
			c.keys[key] = target
			return key
		}
	}
}

func (c *cancels) forget(key cancelKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, key)
}

// find returns the target of what a cancel request shows, if there is one.
func (c *cancels) find(shown []byte) (target cancelTarget, ok bool) {
	if len(shown) != 8 {
		return cancelTarget{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	target, ok = c.keys[cancelKey{binary.BigEndian.Uint32(shown), binary.BigEndian.Uint32(shown[4:])}]
	return target, ok
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the process instead
	return b
}
