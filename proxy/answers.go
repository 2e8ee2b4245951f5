package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/proxy/internal/protocol"
)

// answers forwards what the server sends until one side ends. It alone writes
// to the client once the login is over.
func (s *session) answers(ctx context.Context) error {
	if err := s.out.Flush(); err != nil { // what the loop has left
		return err
	}
	for {
		in := s.server.frames
		inside := in.inside()
		frame, err := in.next()
		if err != nil && s.poked(ctx, err) {
			if err := s.share(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil && s.calledHome(ctx, err) {
			if s.mayGo() {
				return errHome
			}
			continue
		}
		if err != nil {
			return err
		}
		rests, err := s.passBack(frame, inside)
		if err == nil && rests {
			s.callHome(ctx)
			err = s.share(ctx)
		}
		if err == nil && s.mayGo() {
			err = errHome
		}
		if err != nil {
			return err
		}
	}
}

// passBack handles one message of the server, or a further piece of one, and
// sends what came of it, unless more is at hand. It says whether the server rests:
// it is ready for what comes next, and has said nothing since.
func (s *session) passBack(frame []byte, inside bool) (rests bool, err error) {
	kind, in := frame[0], s.server.frames
	switch {
	case !inside:
		s.swallows = false
		err = s.answer(frame)
	case !s.swallows:
		err = s.out.pass(frame)
	}
	if err != nil || in.buffered() {
		return false, err
	}
	if err := s.out.Flush(); err != nil || inside || kind != 'Z' {
		return false, err
	}
	in.settle()
	s.proxy.audit.SealPending()
	return true, nil
}

// answer forwards one message and keeps the queue of replies in step
// (PostgreSQL, chapter "Message Flow").
func (s *session) answer(frame []byte) error {
	kind, e := frame[0], s.giving
	s.giving = nil
	switch kind {
	case 'D', 'd': // rows: the bulk of all traffic
		if e == nil {
			e = s.expect.head()
		}
		if e == nil || !protocol.Fits(e.kind, kind) {
			return errDesync
		}
		s.giving = e
		if e.internal != nil {
			s.swallows = true
			return e.internal.keep(frame)
		}
		if err := s.goBefore(e); err != nil {
			return err
		}
	case 'S':
		s.server.setParameter(frame)
	case 'N': // at any time, as is the next
		if s.principal.Reader && fromServersLog(frame) {
			return nil
		}
	case 'A':
	case 'E':
		return s.answerError(frame)
	case 'Z':
		return s.answerReady(frame)
	case 'W':
		return errors.New("the server started a replication stream")
	default:
		return s.answerStep(frame)
	}
	return s.out.pass(frame)
}

// fromServersLog says whether a notice is what the server writes to its log.
// With client_min_messages a reader can ask for a copy, and it tells how much
// was sorted or spilled on the way to an answer that shows less.
func fromServersLog(frame []byte) bool {
	var notice decode.NoticeResponse
	if err := notice.Decode(frame[headerBytes:]); err != nil {
		return true // nobody could read it
	}
	severity := notice.SeverityUnlocalized
	return severity == "LOG" || strings.HasPrefix(severity, "DEBUG")
}

// answerStep forwards a message that may be the first or the last of an answer.
func (s *session) answerStep(frame []byte) error {
	e := s.expect.head()
	if e != nil && e.internal != nil && strings.IndexByte("123", frame[0]) >= 0 {
		return nil
	}
	if e == nil || !protocol.Fits(e.kind, frame[0]) {
		return errDesync
	}
	if e.kind == 'Q' || e.kind == 'F' {
		e.answered = e.answered || strings.IndexByte("CIV", frame[0]) >= 0
	}
	if e.internal != nil {
		return nil
	}
	if e.silent {
		s.expect.complete()
		return nil
	}
	if err := s.goBefore(e); err != nil {
		return err
	}
	switch frame[0] {
	case 'C':
		e.rows += rowsOf(frame)
	case 's': // the portal gave as many as were asked for, and has more
		e.rows += int64(e.most)
	}
	switch {
	case frame[0] == 'G':
		s.expect.copies(e)
	case e.copying && frame[0] == 'C':
		s.replies.Add(s.expect.copied())
	}
	if protocol.Ends(e.kind, frame[0]) {
		if e.ahead != nil {
			e.ahead.ran.Store(true)
		}
		s.finish(e, audit.Passed, "")
		if e.prepares != nil {
			e.prepares.done.Store(true)
		}
		if e.binds != nil && e.binds.failed.Load() && s.principal.Reader {
			return errDesync // it was not prepared: what is bound is another of its name
		}
		s.expect.complete()
	}
	return s.out.pass(frame)
}

// goBefore writes what goes to the client before the first message of an answer.
func (s *session) goBefore(e *pendingReply) (err error) {
	if e.prelude != nil {
		_, err = s.out.Write(e.prelude)
		e.prelude = nil
	}
	return err
}

// rowsOf reads the number of rows from a command tag such as "SELECT 42".
func rowsOf(frame []byte) int64 {
	n, unit := int64(0), int64(1)
	for i := len(frame) - 2; i > headerBytes && unit < 1e18; i-- { // the last byte is 0
		c := frame[i]
		if c == ' ' {
			return n
		}
		if c < '0' || c > '9' {
			return 0
		}
		n += int64(c-'0') * unit
		unit *= 10
	}
	return 0
}

// answerError forwards an error, or the reason of a refusal in its place.
func (s *session) answerError(frame []byte) error {
	e := s.expect.head()
	if e == nil {
		return s.unexpected(frame)
	}
	if e.kind == 'Q' || e.kind == 'F' {
		e.answered = true
	}
	if e.internal != nil {
		e.internal.row, e.internal.failure = nil, notAnswered(frame)
		return nil
	}
	e.undo()
	if e.check && codeOf(frame) == divisionByZero {
		s.refuse(e, errOtherNames)
	}
	switch {
	case e.refusal != nil:
		frame = errorFrame("ERROR", e.refusal)
		e.refusal = nil
	case e.released:
		frame = repositioned(withoutData(s.stalePlan(e, frame)), e.position)
	case e.rewritten != nil || e.resolved != nil:
		frame = repositioned(frame, e.position)
	}
	switch {
	case e.ahead != nil && e.record == nil:
		e.ahead.fail(codeOf(frame))
	case e.record == nil && (e.kind == 'P' || e.kind == 'B'):
		e.record = s.record(e.statement) // it ends before it was executed
	}
	code := codeOf(frame)
	s.finish(e, audit.Failed, code)
	clear := true
	switch e.kind {
	case 'Q':
		clear = !e.copying || s.expect.failedCopy()
	case 'F', 'S':
	default:
		clear = s.expect.fail(code)
	}
	if err := s.out.pass(frame); err != nil || clear {
		return err
	}
	return errDesync
}

// answerReady ends a simple query, a function call or a Sync.
func (s *session) answerReady(frame []byte) error {
	e := s.expect.head()
	if e == nil || e.kind != 'S' && !e.answered {
		return errDesync
	}
	s.status.Store(uint32(frame[len(frame)-1]))
	s.replies.Add(1)
	s.finish(e, audit.Passed, "")
	internal, silent := e.internal, e.silent
	answered := s.expect.complete()
	if internal != nil {
		if answered { // else it has been ended
			internal.done <- nil
		}
		return nil
	}
	if silent {
		return nil
	}
	if text := s.activated.Load(); s.status.Load() == 'I' && text != nil {
		if err := s.awaitReleases(*text); err != nil {
			return err
		}
		s.activated.CompareAndSwap(text, nil) // another may have been added
	}
	return s.out.pass(frame)
}

// finish records how a statement ended.
func (s *session) finish(e *pendingReply, verdict audit.Verdict, code string) {
	if e.kind != 'Q' && e.kind != 'E' && e.record == nil {
		return
	}
	duration := s.proxy.clock().Sub(e.started)
	if e.fingerprint != nil {
		passed := verdict == audit.Passed
		s.stats.ended(e.fingerprint, passed, e.rows, duration)
		e.fingerprint = nil
		if passed {
			s.proxy.metrics.ended(verdict, duration)
			return
		}
		e.record = s.recordAt(e.started, e.statement)
	}
	r := e.record
	if r == nil {
		return
	}
	e.record = nil
	ended := verdict
	if r.Verdict == audit.Refused || r.Verdict == audit.Released && verdict == audit.Passed {
		ended = r.Verdict
	}
	s.proxy.metrics.ended(ended, duration)
	s.proxy.audit.Finish(r, audit.Outcome{
		Verdict: verdict, SQLState: code, Rows: e.rows,
		Duration: duration,
	})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// errTooLong ends an internal query whose answer has a row that is longer than a buffer.
var errTooLong = sqlstate.New(sqlstate.ProgramLimitExceeded,
	"the session's temporary tables have too many columns for statements over protected tables").
	WithHint("Drop those that are no longer needed: the names of all their columns may take 64 kB.")

// keep stores the row of an internal query's answer.
func (q *internalQuery) keep(frame []byte) error {
	if int64(len(frame)) <= int64(binary.BigEndian.Uint32(frame[1:])) { // a piece of it
		q.row, q.failure = nil, errTooLong
		return nil
	}
	var row decode.DataRow
	if err := row.Decode(frame[headerBytes:]); err != nil {
		return err
	}
	q.row = nil
	for _, v := range row.Values {
		q.row = append(q.row, bytes.Clone(v))
	}
	if len(q.rows) < q.most {
		q.rows = append(q.rows, q.row)
	}
	return nil
}
