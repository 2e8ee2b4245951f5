package fidelity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// AnswerLimit is the most that is kept of an answer, in bytes.
const AnswerLimit = 64 << 20

// cellBytes is what a cell costs besides its text.
const cellBytes = 24

// grace is how long a server that does not keep its statement_timeout is waited for.
const grace = 5 * time.Second

var (
	errTooLarge = fmt.Errorf(
		"the answer is larger than %d MB; ask for groups, or for fewer of them",
		AnswerLimit>>20,
	)
	errTimeout = errors.New("no answer within the time limit")
)

// Connect opens a connection.
type Connect func(context.Context) (*pgx.Conn, error)

// side is one of the two places where queries run. A connection that a query has broken is made
// again for the next one.
type side struct {
	connect  Connect
	settings string // SQL that a new connection begins with
	readOnly bool
	timeout  time.Duration
	conn     *pgx.Conn
}

// ready returns an open connection.
func (s *side) ready(ctx context.Context) (*pgx.Conn, error) {
	if s.conn != nil && !s.conn.IsClosed() {
		return s.conn, nil
	}
	s.awaitCancelled()
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, s.settings, pgx.QueryExecModeSimpleProtocol); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	s.conn = conn
	return conn, nil
}

// close ends the connection.
func (s *side) close() {
	if s.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_ = s.conn.Close(ctx)
		s.awaitCancelled()
	}
}

// awaitCancelled waits until the server has ended what a broken connection has left it with. It
// asks again from time to time: a server that has just begun with a statement does not listen.
func (s *side) awaitCancelled() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-s.conn.PgConn().CleanupDone():
			return
		case <-ctx.Done():
			return
		case <-again.C:
			_ = s.conn.PgConn().CancelRequest(ctx)
		}
	}
}

// run asks a query. Where the table itself is asked, nothing that the query does stays.
func (s *side) run(ctx context.Context, sql string) (*Answer, time.Duration, error) {
	conn, err := s.ready(ctx)
	if err != nil {
		return nil, 0, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.timeout+grace, errTimeout)
	defer cancel()
	if s.readOnly {
		if _, err := conn.Exec(limited, "BEGIN READ ONLY", pgx.QueryExecModeSimpleProtocol); err != nil {
			return nil, 0, err
		}
		defer func() { _, _ = conn.Exec(limited, "ROLLBACK", pgx.QueryExecModeSimpleProtocol) }()
	}
	start := time.Now()
	answer, err := read(limited, cancel, conn, sql)
	if err != nil && limited.Err() != nil && ctx.Err() == nil && !errors.Is(err, errTooLarge) {
		err = errTimeout
	}
	return answer, time.Since(start), err
}

// read collects an answer of one statement, up to AnswerLimit.
func read(ctx context.Context, cancel func(), conn *pgx.Conn, sql string) (*Answer, error) {
	result := conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil)
	answer := &Answer{}
	bytes := 0
	for result.NextRow() {
		values := result.Values()
		row := make([][]byte, len(values))
		for i, v := range values {
			bytes += cellBytes + len(v)
			if v != nil {
				row[i] = append(make([]byte, 0, len(v)), v...)
			}
		}
		if bytes > AnswerLimit {
			cancel() // which ends the connection and the statement
			_, _ = result.Close()
			return nil, errTooLarge
		}
		answer.Rows = append(answer.Rows, row)
	}
	for _, f := range result.FieldDescriptions() {
		answer.Columns = append(answer.Columns, Column{Name: f.Name, Type: f.DataTypeOID})
	}
	_, err := result.Close()
	return answer, err
}
