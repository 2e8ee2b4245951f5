package proxy

import (
	"sync/atomic"
	"time"
)

// company tells who of a proxy's sessions has lately waited for records. It is
// safe for concurrent use.
type company struct {
	latest atomic.Pointer[session] // nil for none that is left
	since  atomic.Int64            // when it became the latest, in Unix nanoseconds
}

// note notes that a session waits for a record.
func (c *company) note(s *session) {
	if c.latest.Load() != s {
		c.latest.Store(s)
		c.since.Store(time.Now().UnixNano())
	}
}

// consistsOf says that a session has been the only one for a while.
func (c *company) consistsOf(s *session, now time.Time) bool {
	return c.latest.Load() == s && now.Sub(time.Unix(0, c.since.Load())) > solitude
}

// forget is for a session that ends.
func (c *company) forget(s *session) { c.latest.CompareAndSwap(s, nil) }
