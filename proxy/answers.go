package proxy

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// answers forwards what the server sends until one side ends. It alone writes
// to the client once the login is over.
func (s *session) answers() error {
	for {
		frame, err := s.server.frames.next()
		if err != nil {
			return err
		}
		if err := s.answer(frame); err != nil {
			return err
		}
		if !s.server.frames.buffered() {
			if err := s.out.Flush(); err != nil {
				return err
			}
		}
	}
}

// answer forwards one message and keeps the queue of expectations in step
// (PostgreSQL, chapter "Message Flow").
func (s *session) answer(frame []byte) error {
	switch frame[0] {
	case 'D', 'd': // rows: the bulk of all traffic
		if e := s.expect.head(); e != nil && e.internal != nil {
			return e.internal.keep(frame)
		}
	case 'N', 'A', 'S': // at any time
	case 'E':
		return s.answerError(frame)
	case 'Z':
		return s.answerReady(frame)
	case 'W':
		return errors.New("the server started a replication stream")
	default:
		return s.answerStep(frame)
	}
	_, err := s.out.Write(frame)
	return err
}

// completes says which messages end the answer to which kind of message.
func completes(kind, answer byte) bool {
	switch answer {
	case '1':
		return kind == 'P'
	case '2':
		return kind == 'B'
	case '3':
		return kind == 'C'
	case 'T', 'n':
		return kind == 'D'
	case 'C', 'I', 's':
		return kind == 'E'
	}
	return false
}

// answerStep forwards a message that may be the first or the last of an answer.
func (s *session) answerStep(frame []byte) error {
	e := s.expect.head()
	if e == nil {
		_, err := s.out.Write(frame)
		return err
	}
	if e.internal != nil {
		return nil
	}
	if e.silent {
		s.expect.complete()
		return nil
	}
	if e.prelude != nil {
		if _, err := s.out.Write(e.prelude); err != nil {
			return err
		}
		e.prelude = nil
	}
	switch frame[0] {
	case 'C':
		e.rows += rowsOf(frame)
	case 's': // the portal gave as many as were asked for, and has more
		e.rows += int64(e.most)
	}
	if frame[0] == 'G' {
		e.copying = true
	}
	if completes(e.kind, frame[0]) {
		s.finish(e, audit.Passed, "")
		s.expect.complete()
	}
	_, err := s.out.Write(frame)
	return err
}

// rowsOf reads the number of rows from a command tag such as "SELECT 42".
func rowsOf(frame []byte) int64 {
	var c decode.CommandComplete
	if c.Decode(frame[headerBytes:]) != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(c.CommandTag[bytes.LastIndexByte(c.CommandTag, ' ')+1:]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// answerError forwards an error, or the reason of a refusal in its place.
func (s *session) answerError(frame []byte) error {
	e := s.expect.head()
	if e == nil {
		_, err := s.out.Write(frame)
		return err
	}
	if e.internal != nil {
		e.internal.row = nil
		return nil
	}
	if e.prepares != nil {
		e.prepares.failed.Store(true)
	}
	switch {
	case e.refusal != nil:
		frame = errorFrame("ERROR", e.refusal)
		e.refusal = nil
	case e.released:
		frame = withoutData(frame)
		fallthrough
	case e.rewritten != nil:
		if e.rewritten != nil {
			frame = repositioned(frame, func(p int) int { return e.rewritten.Position(p, e.statement) })
		}
	}
	if e.record == nil && (e.kind == 'P' || e.kind == 'B') {
		e.record = s.record(e.statement) // it ends before it was executed
	}
	s.finish(e, audit.Failed, codeOf(frame))
	if e.kind != 'Q' && e.kind != 'F' && e.kind != 'S' {
		s.expect.fail()
	}
	_, err := s.out.Write(frame)
	return err
}

// answerReady ends a simple query, a function call or a Sync.
func (s *session) answerReady(frame []byte) error {
	s.status.Store(uint32(frame[len(frame)-1]))
	e := s.expect.head()
	if e != nil {
		s.finish(e, audit.Passed, "")
		internal := e.internal
		e.internal = nil // answered: nobody else is to end it
		s.expect.ready()
		if internal != nil {
			internal.done <- nil
			return nil
		}
	}
	_, err := s.out.Write(frame)
	return err
}

// finish records how a statement ended.
func (s *session) finish(e *expected, verdict audit.Verdict, code string) {
	r := e.record
	if r == nil {
		return
	}
	e.record = nil
	s.proxy.audit.Finish(r, audit.Outcome{
		Verdict: verdict, SQLState: code, Rows: e.rows, Duration: s.proxy.clock().Sub(e.started),
	})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// keep stores the row of an internal query's answer.
func (q *internalQuery) keep(frame []byte) error {
	var row decode.DataRow
	if err := row.Decode(frame[headerBytes:]); err != nil {
		return err
	}
	q.row = nil
	for _, v := range row.Values {
		q.row = append(q.row, bytes.Clone(v))
	}
	return nil
}
