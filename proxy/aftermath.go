package proxy

import (
	"sync/atomic"
	"time"
)

const (
	// crush is how many logins leave enough behind to be worth a collection.
	crush = 100
	// aftermathPause is how long there is no other collection of this kind.
	aftermathPause = 10 * time.Second
)

// aftermath tells when a rush of logins is over, whose garbage would stay until the
// next one: sessions that lie idle afterwards make too little for Go to collect. Its
// zero value is ready to use.
type aftermath struct {
	logins atomic.Int64 // that have ended, well or not

	// One goroutine looks at these.
	seen      int64 // of the logins
	collected int64
	at        time.Time // of the last collection
}

// over says, once for each rush, that nobody has logged in since it was asked last.
func (a *aftermath) over(now time.Time) bool {
	n := a.logins.Load()
	quiet := n == a.seen
	a.seen = n
	if !quiet || n-a.collected < crush || now.Sub(a.at) < aftermathPause {
		return false
	}
	a.collected, a.at = n, now
	return true
}
