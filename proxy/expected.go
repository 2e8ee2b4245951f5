package proxy

import (
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// expected is one message that the server still has to answer.
type expected struct {
	kind byte // 'Q' query, 'P' parse, 'B' bind, 'D' describe, 'E' execute, 'C' close, 'S' sync, 'F' function call

	// prelude goes to the client before the first message of the answer.
	prelude []byte
	// refusal takes the place of the server's error.
	refusal *sqlstate.Error
	// rewritten and statement map positions in errors back to the client's text.
	rewritten *planner.Rewritten
	statement string
	// record is completed and noted when the answer ends; nil for none.
	record  *audit.Record
	started time.Time
	rows    int64
	// internal receives the answer, which the client does not see.
	internal *internalQuery
}

// internalQuery is a query of the proxy's own on the client's session.
type internalQuery struct {
	row  [][]byte
	done chan error
}

// expectations is the queue of what the server owes, written by the goroutine
// that forwards statements and read by the one that forwards answers.
type expectations struct {
	mu    sync.Mutex
	queue []*expected
}

func (q *expectations) add(e *expected) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, e)
}

// head is the oldest expectation, nil for none.
func (q *expectations) head() *expected {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return nil
	}
	return q.queue[0]
}

// pop removes the oldest expectation.
func (q *expectations) pop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) > 0 {
		q.queue[0] = nil
		q.queue = q.queue[1:]
	}
}

// skipToSync removes what the server passes over after an error in the
// extended protocol: everything before the next Sync, which stays.
func (q *expectations) skipToSync() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 && q.queue[0].kind != 'S' {
		q.queue[0] = nil
		q.queue = q.queue[1:]
	}
}

// drain removes and returns everything, when the session ends.
func (q *expectations) drain() []*expected {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.queue
	q.queue = nil
	return left
}
