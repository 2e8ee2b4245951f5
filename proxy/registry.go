package proxy

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// registry are the sessions that run. It is safe for concurrent use.
type registry struct {
	mu       sync.Mutex
	sessions map[*session]bool
}

func (l *registry) add(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions == nil {
		l.sessions = make(map[*session]bool)
	}
	l.sessions[s] = true
}

func (l *registry) remove(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, s)
}

func (l *registry) all() []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.sessions))
}

func (l *registry) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sessions)
}

var (
	errShutdown = sqlstate.New(sqlstate.AdminShutdown,
		"terminating connection because the proxy is shutting down")
	errIdle = sqlstate.New(sqlstate.IdleSessionTimeout,
		"terminating connection due to idle-session timeout")
)

// upkeepInterval is how often sessions are looked at.
const upkeepInterval = time.Second

// maintain looks at the sessions from time to time until the context ends: it
// hands over what they counted, ends idle ones, and closes connections to the server
// that nobody took up again.
func (p *Proxy) maintain(ctx context.Context) {
	defer p.idle.shut()
	ticker := time.NewTicker(upkeepInterval / 2)
	defer ticker.Stop()
	tallied := p.clock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := p.clock()
		p.idle.sweep(now)
		if p.upstreamLimiter.Queued() > 0 {
			p.requestYield()
		}
		sessions := p.registry.all()
		if now.Sub(tallied) >= tallyInterval {
			tallied = now
			p.noteRushes()
			for _, s := range sessions {
				s.noteTally()
			}
		}
		if limit := p.running.Load().IdleTimeout; limit > 0 {
			for _, s := range sessions {
				s.endIfIdle(now, limit)
			}
		}
	}
}

// endIfIdle ends a session that has asked nothing for as long as the limit.
// Only maintain calls it.
func (s *session) endIfIdle(now time.Time, limit time.Duration) {
	if n := s.messages.Load(); n != s.seen || s.since.IsZero() || !s.atRest() {
		s.seen, s.since = n, now
		return
	}
	if now.Sub(s.since) >= limit {
		s.stop(errIdle)
	}
}

// atRest says that the server owes no answer and holds no transaction open.
func (s *session) atRest() bool { return s.status.Load() == 'I' && s.expect.head() == nil }

// owedNothing says that the session is at rest and that the server has answered
// as often as it was asked: only then the connection may be another's. The count
// does not depend on what the session expects.
func (s *session) owedNothing() bool {
	return s.atRest() && s.questions.Load() == s.replies.Load()
}

// drain ends sessions as they come out of their transactions, the others once
// the patience is over.
func (p *Proxy) drain(hard context.Context, cut context.CancelCauseFunc) {
	p.draining.Store(true)
	patience, cancel := context.WithTimeout(hard, p.running.Load().DrainTimeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		for _, s := range p.registry.all() {
			if s.atRest() {
				s.stop(errShutdown)
			}
		}
		select {
		case <-patience.Done():
			cut(errShutdown)
			return
		case <-ticker.C:
		}
	}
}
