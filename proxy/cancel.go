package proxy

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
)

// cancelKey is what a client must show to cancel a query of its session. The
// server's own secret never reaches a client.
type cancelKey struct{ process, secret uint32 }

// target is what a cancel request stops: the proxy's own work, or else the
// server's, under the key that the server gave.
type target struct {
	work      *interrupts
	server    []byte
	delivered sync.WaitGroup
}

// cancels maps keys to those of the server. It is safe for concurrent use.
type cancels struct {
	mu   sync.Mutex
	keys map[cancelKey]*target
}

// register makes a key for a session: the number of the server's process, which
// functions such as pg_terminate_backend take, with a secret of the proxy's own.
func (c *cancels) register(work *interrupts, server []byte) cancelKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		key := cancelKey{secret: binary.BigEndian.Uint32(randomBytes(4))}
		if len(server) >= 4 {
			key.process = binary.BigEndian.Uint32(server)
		}
		if _, taken := c.keys[key]; !taken {
			c.keys[key] = &target{work: work, server: server}
			return key
		}
	}
}

// forget takes a key back, and returns when no request with it is on its way:
// whoever uses the server's connection next is not hit by it.
func (c *cancels) forget(key cancelKey) {
	c.mu.Lock()
	t := c.keys[key]
	delete(c.keys, key)
	c.mu.Unlock()
	if t != nil {
		t.delivered.Wait()
	}
}

// deliver passes a cancel request on to the session that it names, if there is
// one. Nobody is told.
func (c *cancels) deliver(shown []byte, send func(server []byte) error) error {
	if len(shown) != 8 {
		return nil
	}
	c.mu.Lock()
	t := c.keys[cancelKey{binary.BigEndian.Uint32(shown), binary.BigEndian.Uint32(shown[4:])}]
	if t != nil {
		t.delivered.Add(1)
	}
	c.mu.Unlock()
	if t == nil {
		return nil
	}
	defer t.delivered.Done()
	if t.work.interrupt() {
		return nil
	}
	return send(t.server)
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the process instead
	return b
}
