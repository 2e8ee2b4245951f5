package proxy

import (
	"errors"
	"slices"
	"sync"
	"time"

	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// pendingReply is one message that the server still has to answer, or a mark in
// the stream of those that it answers.
type pendingReply struct {
	// kind is 'Q' query, 'P' parse, 'B' bind, 'D' describe, 'E' execute,
	// 'C' close, 'S' sync, 'F' function call; 'd' and 'c' mark the first and
	// the last message of a copy from the client, which have no answer.
	kind byte

	// prelude goes to the client before the first message of the answer.
	prelude []byte
	// refusal takes the place of the server's error.
	refusal *sqlstate.Error
	// check says that it checks names, and fails where they mean something else.
	check bool
	// rewritten and statement map positions in errors back to the client's text.
	rewritten *planner.Rewritten
	statement string
	// resolved is statement where that is not what the client has sent but what
	// that stands for, and maps positions on to sent; nil where they are the same.
	resolved *planner.Rewritten
	sent     string
	// prepares is marked where the server refuses to prepare or to close it, and where it
	// has done so.
	prepares *prepared
	binds    *prepared // what is bound, where it was prepared by message
	// again is marked where the server refuses to prepare it on another connection.
	again *prepared
	// released says that errors may quote released data, and decision, where it
	// is known, what the text reads.
	released bool
	decision *decision
	runs     *prepared // what it runs, where that reads releases
	// record is finished when the answer ends; nil for none.
	record      *audit.Record
	fingerprint *fingerprint // counts the run in place of a record; nil for none
	started     time.Time
	rows        int64
	copying     bool // the server has asked for a copy from the client
	// answered says that the server may be ready: of 'Q' and 'F' only.
	answered bool
	// silent says that the client does not see the answer, unless it is an error.
	silent bool
	ahead  *pipelinedQuery // of a simple query that is planned ahead; nil for none
	most   uint32          // rows that were asked for; 0 for all
	// internal receives the answer, which the client does not see.
	internal *internalQuery
	// lent says that it came from blank, and that once it is in the queue nobody
	// else has it: when it is answered it is wiped, and used again.
	lent bool
	// weight is how much it takes of what may be owed at a time, once it is in the queue.
	weight int
}

// position is the place in the client's text that a place in the server's
// stands for, 0 for none.
func (e *pendingReply) position(p int) int {
	if e.rewritten != nil {
		p = e.rewritten.Position(p, e.statement)
	}
	if e.resolved != nil {
		p = e.resolved.Position(p, e.sent)
	}
	return p
}

// undo notes that the server has not prepared what it was asked to.
func (e *pendingReply) undo() {
	if e.prepares != nil {
		e.prepares.failed.Store(true)
	}
	if e.again != nil {
		e.again.generation.Store(-1)
	}
}

// bare are the messages about which nothing has to be known but their kind.
// Sessions share them: nobody changes one.
var bare = map[byte]*pendingReply{
	'S': {kind: 'S', weight: bareWeight}, 'C': {kind: 'C', weight: bareWeight},
	'D': {kind: 'D', weight: bareWeight},
	'd': {kind: 'd', weight: bareWeight}, 'c': {kind: 'c', weight: bareWeight},
}

// internalQuery is a query of the proxy's own on the client's session.
type internalQuery struct {
	row     [][]byte   // the last one
	rows    [][][]byte // the first ones
	most    int        // of rows
	server  *upstream  // that was asked; nil where that does not matter
	failure error      // why the server failed; nil for none
	done    chan error // has room for one
}

// errNotAnswered ends an internal query that the server passed over.
var errNotAnswered = errors.New("the server did not answer")

// notAnswered is the failure of an internal query. A cancel request may have been
// meant for the statement for which the proxy asks.
func notAnswered(frame []byte) error {
	var e decode.ErrorResponse
	if err := e.Decode(frame[headerBytes:]); err == nil && e.Code == string(sqlstate.QueryCanceled) {
		return sqlstate.New(sqlstate.QueryCanceled, "%s", e.Message).Wrap(errNotAnswered)
	}
	return errNotAnswered
}

// replyQueue is the queue of what the server owes, written by the goroutine
// that forwards statements and read by the one that forwards answers. After an
// error in the extended protocol the server passes over everything up to the
// next Sync, which includes what has yet to be forwarded (PostgreSQL, chapter
// "Message Flow").
type replyQueue struct {
	mu       sync.Mutex
	queue    []*pendingReply
	skipping bool
	dropped  func(*pendingReply) // is told of what will never be answered
	room     [8]*pendingReply    // where the queue of a short transaction lies
	blanks   []*pendingReply     // were lent, and are wiped
	owed     owed
}

// maxBlanks is as many as a short transaction needs.
const maxBlanks = 4

// blank returns an expectation in which nothing is set. One that was answered is
// used again, as most are: a new one for each message was most of what there was
// to collect.
func (q *replyQueue) blank() *pendingReply {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.blanks)
	if n == 0 {
		return &pendingReply{}
	}
	e := q.blanks[n-1]
	q.blanks = q.blanks[:n-1]
	return e
}

func (q *replyQueue) add(e *pendingReply) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.skipping && e.kind != 'S' {
		q.drop(e)
		return
	}
	if n := len(q.queue); e.kind == 'd' || e.kind == 'c' {
		if n == 0 || q.queue[n-1].kind == e.kind {
			return // there is no copy, or one mark is enough
		}
	}
	q.skipping = false
	if len(q.queue) == 0 {
		q.queue = q.room[:0]
	}
	q.queue = append(q.queue, e)
	q.owed.add(e.weigh())
}

// head is the oldest message without an answer, nil for none.
func (q *replyQueue) head() *pendingReply {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return nil
	}
	return q.queue[0]
}

// owesClient says whether an answer is owed that the client waits for.
func (q *replyQueue) owesClient() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.queue, func(e *pendingReply) bool { return e.internal == nil })
}

// skipMarks drops marks at the head: outside of a copy the server passes over them.
func (q *replyQueue) skipMarks() {
	for len(q.queue) > 0 && (q.queue[0].kind == 'd' || q.queue[0].kind == 'c') {
		q.shift()
	}
}

// complete removes the head, whose answer has ended, and says whether there was one: drain
// may have ended it. Where it was lent, the caller has it no more.
func (q *replyQueue) complete() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return false
	}
	if e := q.shift(); e.lent && len(q.blanks) < maxBlanks {
		*e = pendingReply{}
		q.blanks = append(q.blanks, e)
	}
	q.skipMarks()
	return true
}

// fail removes the head, whose answer was an error in the extended protocol,
// and what the server passes over because of it. clear is false where nobody
// can know what that is.
func (q *replyQueue) fail(code string) (clear bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return true
	}
	if q.queue[0].copying && !q.leaveCopy(code) {
		return false
	}
	q.shift()
	for len(q.queue) > 0 && q.queue[0].kind != 'S' {
		q.drop(q.shift())
	}
	q.skipping = len(q.queue) == 0
	return true
}

func (q *replyQueue) shift() *pendingReply {
	e := q.queue[0]
	q.queue[0] = nil
	q.queue = q.queue[1:]
	q.owed.add(-e.weight)
	return e
}

func (q *replyQueue) drop(e *pendingReply) {
	if e.prepares != nil {
		e.prepares.passedOver.Store(true)
	}
	e.undo()
	if e.internal != nil {
		e.internal.done <- errNotAnswered
	}
	if q.dropped != nil {
		q.dropped(e)
	}
}

// drain drops everything, when the session ends.
func (q *replyQueue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 {
		q.drop(q.shift())
	}
}
