package proxy

import (
	"context"
	"encoding/hex"
	"encoding/json"
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
func (s *session) planned(ctx context.Context, text string) (string, *planner.Plan, error) {
	stands, err := s.standing(ctx, text)
	if err != nil {
		return text, nil, err
	}
	plan, err := s.measuredPlan(ctx, stands)
	if err != nil && stands != text {
		placeless := *sqlstate.From(err)
		placeless.Position = 0
		err = &placeless
	}
	return stands, plan, err
}

// standing puts what a text runs by EXECUTE in its place. The server is asked
// what it has under a name: it alone knows, whatever SQL the proxy has not seen
// prepared or forgot. If it were another text than the client's own, that one
// would be planned and recorded.
func (s *session) standing(ctx context.Context, text string) (string, error) {
	if !s.names.kept || s.pipelined || s.status.Load() == 'E' || !s.principal.Reader {
		return text, nil
	}
	execution, ok := planner.ExecutionOf(text)
	if !ok {
		return text, nil
	}
	if err := reserved(text); err != nil {
		return text, err
	}
	prepared, err := s.askPrepared(ctx, execution.Names())
	if err != nil {
		return text, err
	}
	return execution.Resolve(prepared)
}

// longestKept bounds the client's text of a statement, in base64.
const longestKept = 400 << 10

// askPrepared asks the server which statements over protected tables it has
// under some names; nil for other statements, and for none.
func (s *session) askPrepared(ctx context.Context, names []string) ([]*planner.Prepared, error) {
	var list []string
	for _, name := range names {
		// In hexadecimal no encoding makes a quote of half a character.
		list = append(list, "'"+hex.EncodeToString([]byte(name))+"'")
	}
	row, err := s.ask(ctx, fmt.Sprintf(`SELECT pg_catalog.json_agg(CASE WHEN pg_catalog.length(k.kept) <= %d THEN`+
		` pg_catalog.json_build_object('Kept', k.kept, 'Types', ARRAY(SELECT pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.', pg_catalog.quote_ident(t.typname))`+
		` FROM pg_catalog.unnest(p.parameter_types) WITH ORDINALITY u (id, i) JOIN pg_catalog.pg_type t ON t.oid = u.id JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace ORDER BY u.i)) END ORDER BY w.i)`+
		` FROM pg_catalog.unnest(ARRAY[%s]) WITH ORDINALITY w (name, i)`+
		` LEFT JOIN (pg_catalog.pg_prepared_statements p CROSS JOIN LATERAL (SELECT pg_catalog.substring(p.statement, E'%s')) k (kept))`+
		` ON p.from_sql AND p.name = pg_catalog.convert_from(pg_catalog.decode(w.name, 'hex'), pg_catalog.pg_client_encoding())`,
		longestKept, strings.Join(list, ", "), strings.ReplaceAll(planner.KeptForm, `\`, `\\`)))
	if err != nil || len(row) != 1 {
		return nil, sqlstate.New(sqlstate.CannotConnectNow, "the server does not tell what EXECUTE stands for").Wrap(err)
	}
	var prepared []*planner.Prepared
	if err := json.Unmarshal(row[0], &prepared); err != nil || len(prepared) != len(names) {
		return nil, sqlstate.New(sqlstate.CannotConnectNow, "the server does not tell what EXECUTE stands for").Wrap(err)
	}
	return prepared, nil
}

// ask runs a query of the proxy's own, of one row, on the client's session,
// which must not be within a pipeline.
func (s *session) ask(ctx context.Context, query string) ([][]byte, error) {
	q := &internalQuery{done: make(chan error, 1)}
	s.expect.add(&expected{kind: 'Q', internal: q})
	if err := send(s.up, &pgproto3.Query{String: query}); err != nil {
		return nil, err
	}
	if err := s.up.Flush(); err != nil {
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
		return q.row, err
	}
}

// keep is the text by which the server prepares a statement over releases. It
// has no ticket, so that EXECUTE of it, wherever it stands, reads nothing: what
// the client's EXECUTE stands for is put in its place.
func (s *session) keep(ctx context.Context, e *expected, plan *planner.Plan) (string, error) {
	if s.names.taken(plan.Prepares) {
		return "", sqlstate.New(sqlstate.DuplicatePreparedStatement, "prepared statement %q already exists", plan.Prepares)
	}
	d, err := s.tailor(ctx, plan, toPrepare)
	if err != nil {
		return "", err
	}
	s.names.kept = true
	e.rewritten, e.released = plan.Rewrite(d.view), true
	return planner.Keep(e.rewritten.SQL, e.statement), nil
}
