// Package limiter bounds what clients may take: sessions, connections to the server, and
// guesses at cancel keys.
package limiter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Connections bounds the number of sessions, in all and for each principal. Clients
// that find no seat wait in the order in which they came. It is safe for
// concurrent use.
type Connections struct {
	mu         sync.Mutex
	limit      int
	principals int // limit for each; 0 for none
	taken      int
	byName     map[string]int
	waiting    []chan struct{} // closed when the seat is theirs
}

// New returns a limiter of so many in all, and of so many for each principal, 0 for no limit.
func New(limit, principals int) *Connections {
	return &Connections{limit: limit, principals: principals, byName: make(map[string]int)}
}

// ErrFull is the refusal of one too many.
func ErrFull() error {
	return sqlstate.New(sqlstate.TooManyConnections, "sorry, too many clients already")
}

// Acquire waits for a seat as long as the patience lasts, then refuses with 53300;
// with 57P03 where the context is cancelled because no client is wanted any more. waits are
// called when the wait begins.
func (s *Connections) Acquire(ctx context.Context, patience time.Duration, waits ...func()) error {
	s.mu.Lock()
	if s.taken < s.limit {
		s.taken++
		s.mu.Unlock()
		return nil
	}
	if patience == 0 {
		s.mu.Unlock()
		return ErrFull()
	}
	mine := make(chan struct{})
	s.waiting = append(s.waiting, mine)
	s.mu.Unlock()
	for _, tell := range waits {
		tell()
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-mine:
		return nil
	case <-patient.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, mine)
	if i < 0 {
		return nil // it came in the same moment
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	if errors.Is(ctx.Err(), context.Canceled) {
		return sqlstate.New(sqlstate.CannotConnectNow, "the proxy is shutting down")
	}
	return ErrFull()
}

// Release frees a seat for the one who has waited longest.
func (s *Connections) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.admit()
}

// admit gives free seats to those who wait.
func (s *Connections) admit() {
	for s.taken < s.limit && len(s.waiting) > 0 {
		close(s.waiting[0])
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.taken++
	}
}

// Enter counts a session of a principal, and refuses one too many.
func (s *Connections) Enter(principal string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.principals > 0 && s.byName[principal] >= s.principals {
		return sqlstate.New(sqlstate.TooManyConnections, "too many connections for role %q", principal)
	}
	s.byName[principal]++
	return nil
}

// Exit takes back what enter counted.
func (s *Connections) Exit(principal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[principal]--; s.byName[principal] == 0 {
		delete(s.byName, principal)
	}
}

// Of is the number of sessions of a principal.
func (s *Connections) Of(principal string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[principal]
}

// Resize sets new limits. Who has a seat keeps it.
func (s *Connections) Resize(limit, principals int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.principals = limit, principals
	s.admit()
}

// Occupied is how many are taken.
func (s *Connections) Occupied() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// Queued is how many wait.
func (s *Connections) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}
