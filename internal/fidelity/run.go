package fidelity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Runner runs workloads on tables and on their releases.
type Runner struct {
	// Timeout is how long a query may take on each side, AtLeast how many people a group has
	// that is not small.
	Timeout time.Duration
	AtLeast float64
	// Progress is told of each query before it runs; nil for nobody.
	Progress func(q Query, of int)

	tables, releases side
	aggregates       map[string]bool
	quasi            []Use // all quasi-identifiers, without places; none if the role may not ask
}

// Fault is an error about the two connections, with what to do about it.
type Fault struct{ What, Remedy string }

func (f *Fault) Error() string { return f.What + "; " + f.Remedy }

// Open connects with a database as the owner of tables, and through a proxy as a reader.
func (r *Runner) Open(ctx context.Context, tables, releases Connect) error {
	const common = `SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres';
		SET extra_float_digits = 1;`
	limit := fmt.Sprintf(`SET statement_timeout = %d;`, r.Timeout.Milliseconds())
	r.releases = side{connect: releases, timeout: r.Timeout, settings: common + limit +
		`SET tailor.representation = 'value'; SET tailor.notices = off`}
	r.tables = side{connect: tables, timeout: r.Timeout, readOnly: true, settings: common + limit}
	reader, err := r.releases.ready(ctx)
	if err != nil {
		return err
	}
	zone, path, there, err := r.askReader(ctx, reader)
	if err != nil {
		return err
	}
	owner, err := r.tables.ready(ctx)
	if err != nil {
		return err
	}
	if err := askOwner(ctx, owner, there); err != nil {
		return err
	}
	// Names and times mean the same on both sides: what they mean to the reader.
	const same = `SELECT set_config('TimeZone', $1, false), set_config('search_path', $2, false)`
	if _, err := owner.Exec(ctx, same, zone, path); err != nil {
		return err
	}
	if err := assertNobodysCode(ctx, owner); err != nil {
		return err
	}
	r.tables.settings += fmt.Sprintf(
		`; SET TimeZone = %s; SELECT set_config('search_path', %s, false)`,
		quoted(zone),
		quoted(path),
	)
	return r.readCatalog(ctx, owner)
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Close ends the connections.
func (r *Runner) Close() {
	r.tables.close()
	r.releases.close()
}

// whichDatabase names a database: its cluster, and its number and name there.
const whichDatabase = `SELECT concat(
		(SELECT system_identifier FROM pg_catalog.pg_control_system()), ' ', d.oid, ' ', d.datname)
	FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()`

// askReader asserts that a connection is a reader's, through a proxy. The path is without the
// schema research, whose views have the tables' names and answer the proxy only.
func (r *Runner) askReader(
	ctx context.Context,
	conn *pgx.Conn,
) (zone, path, database string, err error) {
	var reads, superuser bool
	err = conn.QueryRow(
		ctx,
		`SELECT pg_catalog.current_setting('TimeZone'),
			(SELECT pg_catalog.string_agg(pg_catalog.quote_ident(s), ', ' ORDER BY n)
			FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY p (s, n)
			WHERE s OPERATOR(pg_catalog.<>) 'research'),
			coalesce(pg_catalog.pg_has_role(r.oid, g.oid, 'MEMBER'), false), r.rolsuper
		FROM pg_catalog.pg_roles r LEFT JOIN pg_catalog.pg_roles g ON g.rolname = 'tailor_reader'
		WHERE r.rolname = CURRENT_USER`,
	).Scan(
		&zone,
		&path,
		&reads,
		&superuser,
	)
	if err != nil {
		return "", "", "", err
	}
	if !reads || superuser {
		return "", "", "", &Fault{
			"the role of --proxy is no reader: it would be shown tables and not releases",
			"connect as a reader, which CALL tailor.grant_reader('ROLE') makes",
		}
	}
	var server *pgconn.PgError
	if _, err := explained(ctx, conn, "SELECT 1"); errors.As(err, &server) {
		return "", "", "", &Fault{
			"--proxy leads to PostgreSQL and not to a proxy",
			"give host and port of tailor serve",
		}
	} else if err != nil {
		return "", "", "", err
	}
	err = conn.QueryRow(ctx, whichDatabase).Scan(&database)
	return zone, path, database, err
}

// askOwner asserts that a connection is with a database, and shows tables as they are.
func askOwner(ctx context.Context, conn *pgx.Conn, database string) error {
	var here string
	if err := conn.QueryRow(ctx, whichDatabase).Scan(&here); err != nil {
		return err
	}
	if here != database {
		return &Fault{
			"--dsn and --proxy lead to different databases",
			"give both the database that the proxy is run for",
		}
	}
	var reads bool
	err := conn.QueryRow(
		ctx,
		`SELECT pg_catalog.pg_has_role(r.oid, 'tailor_reader', 'MEMBER') AND NOT r.rolsuper
		FROM pg_catalog.pg_roles r WHERE r.rolname = CURRENT_USER`,
	).Scan(
		&reads,
	)
	if err == nil && reads {
		return &Fault{
			"the role of --dsn is a reader, and may not see the tables",
			"connect as the owner of the tables",
		}
	}
	return err
}

// assertNobodysCode refuses a search path on which readers have functions or operators, or can
// make some: queries would call them with the rights of the owner. Attacker: a reader, who sets
// what the reader's sessions begin with. TestFidelityRunsNoReadersCode checks it. Nothing here
// is looked up on the path.
func assertNobodysCode(ctx context.Context, owner *pgx.Conn) error {
	var schema *string
	err := owner.QueryRow(ctx, `
		SELECT pg_catalog.min(pg_catalog.quote_ident(n.nspname))
		FROM pg_catalog.unnest(pg_catalog.current_schemas(true)) s (name)
		JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) s.name
		JOIN pg_catalog.pg_roles r
			ON NOT r.rolsuper AND pg_catalog.pg_has_role(r.oid, 'tailor_reader', 'MEMBER')
		WHERE pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE')
		   OR EXISTS (SELECT FROM pg_catalog.pg_proc p
		              WHERE p.pronamespace OPERATOR(pg_catalog.=) n.oid
		                AND p.proowner OPERATOR(pg_catalog.=) r.oid)`).Scan(&schema)
	if err == nil && schema != nil {
		return &Fault{
			"readers have functions, or can make some, in the schema " + *schema +
				" of the reader's search path, and these would run as the role of --dsn",
			"take CREATE on it from readers and PUBLIC, or set another search_path for the reader",
		}
	}
	return err
}

// readCatalog reads which functions are aggregates, and which columns quasi-identifiers.
func (r *Runner) readCatalog(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(
		ctx,
		`SELECT DISTINCT proname::text FROM pg_catalog.pg_proc WHERE prokind = 'a'`,
	)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	r.aggregates = make(map[string]bool, len(names))
	for _, n := range names {
		r.aggregates[n] = true
	}
	rows, err = conn.Query(ctx, `SELECT n.nspname || '.' || c.relname, item ->> 'name', ''
		FROM tailor.policies p JOIN pg_catalog.pg_class c ON c.oid = p.relation
			JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
			pg_catalog.jsonb_array_elements(p.policy -> 'columns') items (item)
		WHERE item ->> 'class' = 'quasi_identifier' ORDER BY 1, 2`)
	if err == nil {
		r.quasi, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Use])
	}
	return unlessForbidden(err) // forbidden to roles that are no members of tailor_admin
}

// shown lists the releases of the owner's tables, some of which are made for the first query.
func (r *Runner) shown(ctx context.Context) ([]Release, error) {
	conn, err := r.tables.ready(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, `
		SELECT n.nspname || '.' || c.relname, e.audience, e.copied, e.subjects,
			e.arrivals + e.departures + e.changes
		FROM tailor.epochs e JOIN pg_catalog.pg_class c ON c.oid = e.relation
			JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY 1, 2`)
	out := []Release{}
	if err == nil {
		out, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Release])
	}
	return out, unlessForbidden(err)
}

// unlessForbidden is an error other than that of missing rights.
func unlessForbidden(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42501" {
		return nil
	}
	return err
}

// explained asks which quasi-identifiers a query uses.
func explained(ctx context.Context, conn *pgx.Conn, sql string) (*Explanation, error) {
	const explain = "EXPLAIN (TAILOR, FORMAT JSON) "
	result := conn.PgConn().ExecParams(ctx, explain+sql, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != 1 {
		return nil, errors.New("EXPLAIN (TAILOR) has no document")
	}
	return ReadExplanation(result.Rows[0][0])
}

// Run asks each query on both sides. A query that fails is reported, and the others go on; the
// error is of the context, or of a connection that cannot be made again.
func (r *Runner) Run(ctx context.Context, queries []Query) (*Report, error) {
	report := &Report{
		Note:      Note,
		AtLeast:   r.AtLeast,
		TimeoutMS: r.Timeout.Milliseconds(),
		Queries:   []Result{},
	}
	for _, q := range queries {
		if r.Progress != nil {
			r.Progress(q, len(queries))
		}
		result, err := r.query(ctx, q)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		report.Queries = append(report.Queries, *result)
	}
	report.sumUp()
	var err error
	report.Releases, err = r.shown(ctx)
	return report, err
}

// query runs one query.
func (r *Runner) query(ctx context.Context, q Query) (*Result, error) {
	result := &Result{Number: q.Number, Line: q.Line, Name: q.Name, SQL: q.SQL, Uses: []Use{}}
	statement, err := ReadStatement(q.SQL, func(name string) bool { return r.aggregates[name] })
	if err != nil {
		result.Outcome, result.Reason = SyntaxError, err.Error()
		if errors.Is(err, ErrNoQuery) {
			result.Outcome = NoQuery
		}
		return result, nil
	}
	reader, err := r.releases.ready(ctx)
	if err != nil {
		return nil, err
	}
	account, err := explained(ctx, reader, q.SQL)
	switch {
	case err != nil: // the reason comes with the answer
		result.Uses = UsesOf(nil, statement, r.quasi)
	case len(account.Tables) == 0:
		result.Outcome, result.Reason = Unprotected, "it reads no protected table"
		return result, nil
	default:
		result.Uses = UsesOf(account, statement, r.quasi)
		for _, t := range account.Tables {
			result.reads = append(result.reads, t.Table)
		}
	}
	truth, took, trueErr := r.tables.run(ctx, q.SQL)
	result.TrueMS = milliseconds(took)
	release, took, releaseErr := r.releases.run(ctx, q.SQL)
	result.ReleaseMS = milliseconds(took)
	result.TrueError, result.ReleaseError = r.failure(trueErr, true), r.failure(releaseErr, false)
	switch {
	case result.TrueError == nil && result.ReleaseError == nil:
		result.Comparison, err = Compare(truth, release, statement, r.AtLeast)
		result.Outcome = Compared
		if err != nil {
			result.Outcome, result.Reason = NotComparable, strings.TrimPrefix(
				err.Error(),
				ErrNotComparable.Error()+": ",
			)
		}
	case result.TrueError == nil && isRefusal(result.ReleaseError.SQLState):
		result.Outcome, result.Reason = Refused, result.ReleaseError.Message
	default:
		result.Outcome, result.Reason = Failed, result.failed()
	}
	return result, nil
}

// isRefusal says whether an SQLSTATE means that releases do not answer a query.
func isRefusal(code string) bool {
	switch code {
	case "0A000", "42501", "KA001", "KA004":
		return true
	}
	return false
}

// failure words an error. Of what PostgreSQL says of the tables only messages about names, syntax
// and limits are kept: others may quote data that the report has no use for.
func (r *Runner) failure(err error, ofTables bool) *Failure {
	var server *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &server):
		return &Failure{Message: err.Error()}
	case server.Code == "57014":
		return &Failure{
			SQLState: server.Code,
			Message:  fmt.Sprintf("not done within %v", r.Timeout),
			Hint:     "--statement-timeout gives it longer.",
		}
	case ofTables && server.Code == "42501":
		return &Failure{
			SQLState: server.Code,
			Message:  server.Message,
			Hint:     "--dsn needs the rights of the tables' owner.",
		}
	case ofTables && !strings.HasPrefix(server.Code, "42"):
		return &Failure{SQLState: server.Code, Message: "PostgreSQL failed the query on the table"}
	}
	return &Failure{SQLState: server.Code, Message: server.Message, Hint: server.Hint}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
