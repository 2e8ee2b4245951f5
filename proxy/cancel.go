package proxy

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"

	"github.com/hiatus-tailor/tailor/proxy/internal/cancelkey"
	"github.com/hiatus-tailor/tailor/proxy/internal/limiter"
)

// target is what a cancel request stops: the proxy's own work, or else the
// server's, under the key that the server gave.
type target struct {
	work      *interrupts
	server    *upstream // nil while the session has no connection
	delivered sync.WaitGroup
	turn      chan struct{} // held by the request that is on its way to the server
	// closed when the request that waits for its turn is delivered; nil for none
	next chan struct{}
}

// cancels maps the keys that clients have to those of the server, which never
// reach a client. It is safe for concurrent use.
type cancels struct {
	mu   sync.Mutex
	keys map[string]*target
	ways chan struct{} // one for each request that may be on its way at once
}

// maxDelivered is the number of cancel requests that may be on their way at once
// to PostgreSQL, where each takes a connection, and as many to peers.
const maxDelivered = 16

func newCancels() cancels {
	return cancels{keys: make(map[string]*target), ways: make(chan struct{}, maxDelivered)}
}

// register makes a key for a session: the number of the server's process, which
// functions such as pg_terminate_backend take, with a secret of the proxy's own.
func (c *cancels) register(
	ring cancelkey.Ring, length int, work *interrupts, server *upstream,
) string {
	var process uint32
	if len(server.key) >= 4 {
		process = binary.BigEndian.Uint32(server.key)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		key := ring.Issue(process, length)
		if _, taken := c.keys[key]; !taken {
			c.keys[key] = &target{work: work, server: server, turn: make(chan struct{}, 1)}
			return key
		}
	}
}

// forget takes a key back, and returns when no request with it is on its way:
// whoever uses the server's connection next is not hit by it.
func (c *cancels) forget(key string) {
	c.mu.Lock()
	t := c.keys[key]
	delete(c.keys, key)
	if t != nil {
		t.server = nil
	}
	c.mu.Unlock()
	if t != nil {
		t.delivered.Wait()
	}
}

// point makes a key stand for another connection to the server, nil for none.
// Then it returns when no request with it is on its way to the one before.
func (c *cancels) point(key string, server *upstream) {
	c.mu.Lock()
	t := c.keys[key]
	if t != nil {
		t.server = server
	}
	c.mu.Unlock()
	if t != nil && server == nil {
		t.delivered.Wait()
	}
}

// deliver passes a cancel request on to the session that its key names, and says
// whether there is one. Of a session one request is on its way to the server at
// a time and one waits, which does for those that come while it waits.
func (c *cancels) deliver(
	ctx context.Context, shown string, send func(server *upstream) error,
) (found bool, err error) {
	c.mu.Lock()
	t := c.keys[shown]
	c.mu.Unlock()
	if t == nil {
		return false, nil
	}
	if t.work.interrupt() {
		return true, nil
	}
	c.mu.Lock()
	if same := t.next; same != nil {
		c.mu.Unlock()
		select {
		case <-same:
		case <-ctx.Done():
		}
		return true, nil
	}
	done := make(chan struct{})
	t.next = done
	c.mu.Unlock()
	defer close(done)
	way, err := c.take(ctx, t)
	c.mu.Lock()
	t.next = nil
	server := t.server
	if err == nil && server != nil {
		t.delivered.Add(1)
		defer t.delivered.Done()
	}
	c.mu.Unlock()
	if err != nil {
		return true, err
	}
	defer way()
	if server == nil || t.work.interrupt() {
		return true, nil
	}
	return true, send(server)
}

// take waits for the turn of a session's request and for a way that is free, and
// returns what gives up both.
func (c *cancels) take(ctx context.Context, t *target) (leave func(), err error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case c.ways <- struct{}{}:
	case <-ctx.Done():
		<-t.turn
		return nil, ctx.Err()
	}
	return func() { <-c.ways; <-t.turn }, nil
}

// deliver handles a client's cancel request: here, or at the peer that its key
// tells. The client is told nothing (PostgreSQL, chapter "Canceling Requests in
// Progress"), and only learns by the end of the connection that it is done.
func (p *Proxy) deliver(ctx context.Context, r *running, g *greeting) {
	from := limiter.Origin(g.conn.RemoteAddr())
	if !p.cancelLimiter.Allowed(from, p.clock()) {
		p.log.Info("cancel request refused", "rule", "too many wrong keys")
		return
	}
	shown := string(g.cancel)
	found, err := p.cancels.deliver(ctx, shown, func(u *upstream) error { return r.cancel(ctx, u) })
	if !found {
		found, err = p.pass(ctx, r, shown)
	}
	if !found {
		p.cancelLimiter.Wrong(from, p.clock())
	}
	if err != nil {
		p.log.Warn("cancel request not delivered", "cause", err)
	}
}

// pass asks the peer that a key tells, once there is a way.
func (p *Proxy) pass(ctx context.Context, r *running, shown string) (found bool, err error) {
	select {
	case p.passing <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-p.passing }()
	return r.peers.pass(ctx, r, shown, p.clock())
}

// accept handles a cancel request that a peer has passed on, and tells it
// whether there is such a session. It goes no further.
func (p *Proxy) accept(ctx context.Context, r *running, g *greeting) {
	shown, err := r.peers.open(g.passed, p.clock(), &p.replays)
	if err != nil {
		p.log.Info("cancel request refused", "rule", "not from a peer", "cause", err)
		return
	}
	found, err := p.cancels.deliver(ctx, shown, func(u *upstream) error { return r.cancel(ctx, u) })
	answer := unknownKey
	if found {
		answer = deliveredKey
	}
	_, _ = g.conn.Write([]byte{answer})
	if err != nil {
		p.log.Warn("cancel request not delivered", "cause", err)
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the process instead
	return b
}
