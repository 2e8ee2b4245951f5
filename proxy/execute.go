package proxy

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// planned plans a text of the client's. Where that runs statements which were
// prepared by SQL over protected tables, they stand in it, in place of EXECUTE,
// and the text that comes back is the one to run, to answer and to record.
// resolved is nil where it is the client's own.
func (s *session) planned(
	ctx context.Context, sent *statementInfo,
) (runs *statementInfo, resolved *planner.Rewritten, plan *planner.Plan, err error) {
	resolved, err = s.standing(ctx, sent.text)
	if err != nil {
		return sent, nil, nil, err
	}
	if resolved == nil {
		plan, err = s.plan(ctx, sent)
		return sent, nil, plan, err
	}
	runs = &statementInfo{text: resolved.SQL}
	plan, err = s.plan(ctx, runs)
	if err != nil {
		placed := *sqlstate.From(err)
		if placed.Position > 0 {
			placed.Position = resolved.Position(placed.Position, sent.text)
		}
		err = &placed
	}
	return runs, resolved, plan, err
}

// standing puts what a text runs by EXECUTE in its place. The server is asked
// what it has under a name: it alone knows, whatever SQL the proxy has not seen
// prepared or forgot. If it were another text than the client's own, that one
// would be planned and recorded. The outcome is nil where the text stands for
// itself.
func (s *session) standing(ctx context.Context, text string) (*planner.Rewritten, error) {
	if !s.names.kept || s.state.InPipeline() || s.status.Load() == 'E' || !s.principal.Reader {
		return nil, nil
	}
	execution, ok := planner.ExecutionOf(text)
	if !ok {
		return nil, nil
	}
	if err := reserved(text); err != nil {
		return nil, err
	}
	var prepared []*planner.Prepared
	for _, name := range execution.Names() {
		p, err := s.askPrepared(ctx, name)
		if err != nil {
			return nil, err
		}
		prepared = append(prepared, p)
	}
	return execution.Resolve(prepared)
}

// What the server tells of a statement comes in rows that are shorter than a
// buffer: longer ones would be taken for the client's.
const (
	longestKept = 400 << 10 // of the client's text, in base64
	keptPiece   = 8 << 10
)

// selectPrepared asks for one statement. Whatever is in the session's
// search_path, nothing of it is called.
var selectPrepared = fmt.Sprintf(
	`SELECT pg_catalog.substr(k.kept, c.at, %d), CASE WHEN c.at OPERATOR(pg_catalog.=) 1
		THEN pg_catalog.to_json(ARRAY(`+
		`SELECT pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.',
		pg_catalog.quote_ident(t.typname))`+
		` FROM pg_catalog.unnest(p.parameter_types) WITH ORDINALITY u (id, i) JOIN pg_catalog.pg_type t
		ON t.oid OPERATOR(pg_catalog.=) u.id`+
		` JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace
		ORDER BY u.i)) END`+
		` FROM pg_catalog.pg_prepared_statements p CROSS
		JOIN LATERAL (SELECT pg_catalog.substring(p.statement, E'%s')) k (kept)`+
		` CROSS JOIN LATERAL pg_catalog.generate_series(1, pg_catalog.length(k.kept), %[1]d) c (at)`+
		` WHERE p.from_sql AND p.name OPERATOR(pg_catalog.=)
		pg_catalog.convert_from(pg_catalog.decode('%%s', 'hex'), pg_catalog.pg_client_encoding())`+
		` AND pg_catalog.length(k.kept) OPERATOR(pg_catalog.<=) %[3]d
		AND pg_catalog.cardinality(p.parameter_types) OPERATOR(pg_catalog.<=) %[4]d ORDER BY c.at`,
	keptPiece, strings.ReplaceAll(planner.KeptForm, `\`, `\\`), longestKept, planner.MostParameters)

// askPrepared asks the server which statement over protected tables it has under
// a name; nil for another statement, and for none.
func (s *session) askPrepared(ctx context.Context, name string) (*planner.Prepared, error) {
	// In hexadecimal no encoding makes a quote of half a character.
	rows, err := s.ask(ctx, fmt.Sprintf(selectPrepared, hex.EncodeToString([]byte(name))))
	unknown := sqlstate.New(sqlstate.CannotConnectNow,
		"the server does not tell what EXECUTE stands for")
	var known *sqlstate.Error
	if errors.As(err, &known) {
		return nil, known
	}
	if err != nil {
		return nil, unknown.Wrap(err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	prepared := &planner.Prepared{}
	if len(rows[0]) != 2 {
		return nil, unknown
	}
	if err := json.Unmarshal(rows[0][1], &prepared.Types); err != nil {
		return nil, unknown.Wrap(err)
	}
	for _, row := range rows {
		prepared.Kept += string(row[0])
	}
	return prepared, nil
}

// ask runs a query of the proxy's own on the client's session, which must not be
// within a pipeline.
func (s *session) ask(ctx context.Context, query string) (rows [][][]byte, err error) {
	q := &internalQuery{done: make(chan error, 1), most: longestKept/keptPiece + 1}
	if err := s.question(query, q); err != nil {
		return nil, err
	}
	timer := time.NewTimer(settingsPatience)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timer.C:
		return nil, errNotAnswered
	case err := <-q.done:
		return q.rows, cmp.Or(err, q.failure)
	}
}

// questionName is the server's name for the statement and the portal of a question of the
// proxy's own.
const questionName = ownPrefix + "question"

// question sends a query of the proxy's own.
func (s *session) question(text string, q *internalQuery) error {
	s.expect.add(&pendingReply{kind: 'Q', internal: q})
	if err := send(s.up, questionOf(text)...); err != nil {
		return err
	}
	return s.up.Flush()
}

// questionOf are the messages of a question. A simple query would end the client's unnamed
// statement and portal.
func questionOf(text string) []message {
	return []message{
		&pgproto3.Close{ObjectType: 'P', Name: questionName},
		&pgproto3.Close{ObjectType: 'S', Name: questionName},
		&pgproto3.Parse{Name: questionName, Query: text},
		&pgproto3.Bind{DestinationPortal: questionName, PreparedStatement: questionName},
		&pgproto3.Execute{Portal: questionName},
		&pgproto3.Close{ObjectType: 'P', Name: questionName},
		&pgproto3.Close{ObjectType: 'S', Name: questionName},
		&pgproto3.Sync{},
	}
}

// keep is the text by which the server prepares a statement over releases. It
// has no ticket, so that EXECUTE of it, wherever it stands, reads nothing: what
// the client's EXECUTE stands for is put in its place.
func (s *session) keep(ctx context.Context, e *pendingReply, plan *planner.Plan) (string, error) {
	if s.names.taken(plan.Prepares) {
		return "", sqlstate.New(sqlstate.DuplicatePreparedStatement,
			"prepared statement %q already exists", plan.Prepares)
	}
	d, err := s.tailor(ctx, plan)
	if err != nil {
		return "", err
	}
	s.names.kept = true
	e.over(plan, d)
	return planner.Keep(e.rewritten.SQL, e.statement), nil
}
