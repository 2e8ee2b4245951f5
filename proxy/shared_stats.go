package proxy

import (
	"net"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// sharedStats are the tallies of short sessions: those of one role, database and
// host that take over each other's connections count their runs together, or
// each would leave a record of its own. It is safe for concurrent use.
type sharedStats struct {
	mu      sync.Mutex
	tallies map[rush]*together
}

// rush is who counts together.
type rush struct{ principal, database, host string }

// together are statistics with the number of sessions that have it now.
type together struct {
	statementStats
	sessions int
}

// join returns the statistics of a session that begins.
func (r *sharedStats) join(key rush, fresh func() statementStats) *statementStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tallies[key]
	if t == nil {
		if r.tallies == nil {
			r.tallies = make(map[rush]*together)
		}
		t = &together{statementStats: fresh()}
		r.tallies[key] = t
	}
	t.sessions++
	return &t.statementStats
}

// leave ends what join began.
func (r *sharedStats) leave(key rush) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tallies[key].sessions--
}

// take ends an interval and returns what was counted. Tallies that nobody has
// any more are forgotten.
func (r *sharedStats) take(now time.Time) []sum {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sums []sum
	for key, t := range r.tallies {
		sums = append(sums, t.take(now, key.record)...)
		if t.sessions == 0 {
			delete(r.tallies, key)
		}
	}
	return sums
}

// record starts the record of runs of several sessions, and names none of them.
func (r rush) record(started time.Time, statement string) *audit.Record {
	made := audit.NewRecord(started, statement)
	made.Principal, made.Database, made.Client = r.principal, r.database, r.host
	return made
}

// hurry makes a session that took over a connection count with others, until
// done is called.
func (s *session) hurry() (done func()) {
	host, _, _ := net.SplitHostPort(s.address)
	key := rush{s.principal.Name, s.database, host}
	s.together = true
	s.stats = s.proxy.sharedStats.join(key,
		func() statementStats { return statementStats{seed: s.proxy.seed} })
	return func() { s.proxy.sharedStats.leave(key) }
}

// noteRushes hands over what short sessions have counted.
func (p *Proxy) noteRushes() {
	for _, counted := range p.sharedStats.take(p.clock()) {
		p.audit.Finish(counted.record, counted.outcome)
	}
}
