package audit

import (
	"sync"
	"time"
)

// A limiter lets through a burst and then a steady number per second.
type limiter struct {
	mu    sync.Mutex
	spent float64
	last  time.Time
}

// How many refused logins are recorded one by one.
const (
	loginBurst     = 100
	loginPerSecond = 5
)

func (l *limiter) allow(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent = max(0, l.spent-now.Sub(l.last).Seconds()*loginPerSecond)
	l.last = now
	if l.spent+1 > loginBurst {
		return false
	}
	l.spent++
	return true
}
