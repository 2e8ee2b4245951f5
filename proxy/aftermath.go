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
	logins atomic.Int64 // that came to a session

	// One goroutine looks at these.
	seen    int64     // of the logins
	settled int64     // of them, when it was last quiet
	due     bool      // a rush is over, and nothing collected since
	at      time.Time // of the last collection
}

// over is asked at intervals, and says once for each rush that it is over: many
// came, without an interval between them in which nobody did.
func (a *aftermath) over(now time.Time) bool {
	n := a.logins.Load()
	quiet := n == a.seen
	a.seen = n
	if !quiet {
		return false
	}
	a.due = a.due || n-a.settled >= crush
	a.settled = n
	if !a.due || now.Sub(a.at) < aftermathPause {
		return false
	}
	a.due, a.at = false, now
	return true
}
