package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// reportForm is the number of the form that a report has in JSON.
const reportForm = 1

// report is what an ethics board or a data-protection officer is told. It holds names of
// tables, columns and roles, and figures, but no value of a protected table.
type report struct {
	Form     int       `json:"report_form"`
	Made     time.Time `json:"made"`
	MadeBy   string    `json:"made_by"`
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`
	Database string    `json:"database"`

	Tables   []reportedTable   `json:"tables"`
	Readers  []reportedReader  `json:"readers"`
	Projects []reportedProject `json:"projects"`
	// FreshStarts are where the guarantee over what was shown before was given up.
	FreshStarts []freshStart `json:"fresh_starts"`
	// Exceptions say, one sentence each, what weakens the guarantee by intent.
	Exceptions []string `json:"exceptions"`

	Sum      audit.Total      `json:"sum"`
	Reads    []reportedReads  `json:"reads"`
	Exports  []reportedExport `json:"exports"`
	Refusals []refusalCount   `json:"refusals"`
	// Riskiest and Costliest are the released statements, one of each kind, with
	// the highest risk and the greatest loss.
	Riskiest  []audit.Entry `json:"-"`
	Costliest []audit.Entry `json:"-"`
	// Verification is nil if the log could not be read as a whole.
	Verification *audit.Report `json:"verification"`

	Copies   []copyCount      `json:"copies"`
	Erasures []erasureCount   `json:"erasures"`
	Changes  []reportedChange `json:"changes"`
	// Compared is when the report was made that Changes are since, or nil.
	Compared *time.Time `json:"compared"`
}

// reportedTable is a protected table.
type reportedTable struct {
	Name string `json:"name"`
	// Seen is whether the role that makes the report may know of the table's releases.
	Seen     bool              `json:"seen"`
	Version  int               `json:"version"`
	Author   string            `json:"author"`
	Since    time.Time         `json:"since"`
	Policy   plainPolicy       `json:"policy"`
	Releases []reportedRelease `json:"releases"`
	// Writers can write rows of the table, and Bypasses read it without Tailor: readers.
	Writers  []string `json:"writers"`
	Bypasses []string `json:"bypasses"`

	oid      uint32
	document document
}

// reportedRelease is what an audience is shown of a table, and how far that is behind.
type reportedRelease struct {
	Chain      int              `json:"chain"`
	Audience   string           `json:"audience"`
	Copied     time.Time        `json:"copied"`
	Behind     bool             `json:"behind"` // a newer copy or policy is not shown yet
	Rows       int64            `json:"rows"`
	Subjects   int64            `json:"subjects"`
	Classes    int64            `json:"classes"`
	Smallest   int64            `json:"smallest_class"`
	Arrivals   waitingSubjects  `json:"arrivals"`
	Departures waitingSubjects  `json:"departures"`
	Changes    waitingSubjects  `json:"changes"`
	Stale      float64          `json:"stale"` // the share of those shown who have left
	Next       string           `json:"next"`
	Columns    []releasedColumn `json:"columns"`
}

// waitingSubjects are how many wait, and since when.
type waitingSubjects struct {
	Subjects int64      `json:"subjects"`
	Since    *time.Time `json:"since"`
}

// releasedColumn is how exact a release shows a column.
type releasedColumn struct {
	Name  string  `json:"name"`
	Exact float64 `json:"exact"` // the share of rows with the table's own value
	Loss  float64 `json:"loss"`  // the mean share of the domain that a label covers
}

// freshStart is a table of which, or that of all, under no name, what was shown before is
// forgotten.
type freshStart struct {
	Table  string    `json:"table"`
	Times  int       `json:"times"`
	Latest time.Time `json:"latest"`
}

// reportedReader is a role that may read releases.
type reportedReader struct {
	Role     string `json:"role"`
	LogsIn   bool   `json:"logs_in"`
	Projects string `json:"projects"`
}

// reportedProject is a declared workload with a root of its own.
type reportedProject struct {
	Project string   `json:"project"`
	Table   string   `json:"table"`
	Readers []string `json:"readers"`
}

// reportedReads are the statements of a principal on a relation.
type reportedReads struct {
	audit.Total
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// reportedExport is a table that tailor export has written to a file.
type reportedExport struct {
	Time      time.Time `json:"time"`
	Principal string    `json:"principal"`
	Table     string    `json:"table"`
	Recipient string    `json:"recipient"`
	Rows      *int64    `json:"rows"`
}

// refusalCount counts the statements that ended with an SQLSTATE.
type refusalCount struct {
	Verdict  string `json:"verdict"`
	SQLState string `json:"sqlstate"`
	Count    int64  `json:"count"`
}

// copyCount are the copies of a table that were made in the period.
type copyCount struct {
	Table  string    `json:"table"`
	Copies int64     `json:"copies"`
	Last   time.Time `json:"last"`
}

// erasureCount are the erasures on request from a table: in the period, and ever.
type erasureCount struct {
	Table      string `json:"table"`
	Departures string `json:"departures"`
	InPeriod   int64  `json:"in_period"`
	Ever       int64  `json:"ever"`
	Others     int64  `json:"others"` // whose rows were taken along in the period
}

// mostShown is how many statements a report shows with their graphs.
const mostShown = 5

// gatherReport reads all that a report tells but what has changed. All but the
// verification of the log is of one moment.
func gatherReport(ctx context.Context, conn *pgx.Conn, f audit.Filter) (*report, error) {
	r := &report{
		Form: reportForm, Made: time.Now(), Since: f.Since, Until: f.Until,
		Database: conn.Config().Database,
	}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, conn, snapshot, func(tx pgx.Tx) error {
		if err := assertInstalled(ctx, tx); err != nil {
			return err
		}
		// Names are given with their schemas, and nobody's functions are found first.
		_, err := tx.Exec(ctx, `SET LOCAL search_path = pg_catalog, pg_temp`)
		for _, read := range []func(context.Context, pgx.Tx) error{
			r.readTables, r.readReleases, r.readColumns, r.readReaders, r.readWriters,
			r.readActivity, r.readExports, r.readHistory,
		} {
			if err == nil {
				err = read(ctx, tx)
			}
		}
		if err != nil {
			return refusal(ctx, "read what is protected and was asked", err)
		}
		return r.readForemost(ctx, tx, f)
	})
	if err != nil {
		return nil, err
	}
	r.Exceptions = r.exceptions()
	r.Verification, err = audit.Verify(ctx, audit.Source{Conn: conn, Now: r.Made})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil { // the report says that the log was not verified
		r.Verification = nil
	}
	return r, nil
}

// readTables reads the policies in force.
func (r *report) readTables(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT p.relation::oid, p.relation::text, p.version, coalesce(p.author, ''), p.created,
			p.policy, tailor.owns(p.relation) OR pg_has_role(session_user, 'tailor_owner', 'MEMBER'),
			coalesce(extract(epoch FROM s.every), 0)::bigint, coalesce(s.on_change, false)
		FROM tailor.policies p LEFT JOIN tailor.schedules s USING (relation)
		WHERE p.version IS NOT NULL ORDER BY 2`)
	if err != nil {
		return err
	}
	r.Tables, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t reportedTable, err error) {
		var raw []byte
		var seconds int64
		var s schedule
		if err := row.Scan(&t.oid, &t.Name, &t.Version, &t.Author, &t.Since, &raw, &t.Seen,
			&seconds, &s.onChange); err != nil {
			return t, err
		}
		if err := json.Unmarshal(raw, &t.document); err != nil {
			return t, fmt.Errorf("policy of %s: %w", t.Name, err)
		}
		s.every = time.Duration(seconds) * time.Second
		t.Policy = t.document.plain(&s)
		return t, nil
	})
	if err != nil {
		return err
	}
	return tx.QueryRow(ctx, `SELECT session_user::text`).Scan(&r.MadeBy)
}

// table finds a protected table, nil if it is none.
func (r *report) table(oid uint32) *reportedTable {
	at := slices.IndexFunc(r.Tables, func(t reportedTable) bool { return t.oid == oid })
	if at < 0 {
		return nil
	}
	return &r.Tables[at]
}

// readReleases reads what is shown of the role's own tables.
func (r *report) readReleases(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT relation::oid, chain, audience, copied, coalesce(behind, true), rows, subjects,
			blocks, min_block, arrivals, arrivals_since, departures, departures_since, changes,
			changes_since, coalesce(stale, 0), next
		FROM tailor.epochs ORDER BY audience`)
	if err != nil {
		return err
	}
	var oid uint32
	var one reportedRelease
	_, err = pgx.ForEachRow(rows, []any{
		&oid, &one.Chain, &one.Audience, &one.Copied, &one.Behind, &one.Rows, &one.Subjects,
		&one.Classes, &one.Smallest, &one.Arrivals.Subjects, &one.Arrivals.Since,
		&one.Departures.Subjects, &one.Departures.Since, &one.Changes.Subjects,
		&one.Changes.Since, &one.Stale, &one.Next,
	}, func() error {
		if t := r.table(oid); t != nil {
			t.Releases = append(t.Releases, one)
		}
		return nil
	})
	return err
}

// readColumns reads how exact they are shown.
func (r *report) readColumns(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT relation::oid, chain, column_name, exact, loss
		FROM tailor.released_columns ORDER BY chain, number`)
	if err != nil {
		return err
	}
	var oid uint32
	var chain int
	var c releasedColumn
	_, err = pgx.ForEachRow(rows, []any{&oid, &chain, &c.Name, &c.Exact, &c.Loss}, func() error {
		t := r.table(oid)
		if t == nil {
			return nil
		}
		for i := range t.Releases {
			if t.Releases[i].Chain == chain {
				t.Releases[i].Columns = append(t.Releases[i].Columns, c)
			}
		}
		return nil
	})
	return err
}

// readReaders reads who may read, and for which projects.
func (r *report) readReaders(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT r.rolname::text, r.rolcanlogin, coalesce((
			SELECT string_agg(DISTINCT p.project, ', ') FROM tailor.projects p, unnest(p.readers) m (name)
			WHERE pg_has_role(r.oid, m.name, 'MEMBER')), '')
		FROM pg_roles r
		WHERE r.rolname IN (SELECT tailor.reader_roles()) AND r.rolname <> 'tailor_reader'
		ORDER BY 1`)
	if err != nil {
		return err
	}
	if r.Readers, err = pgx.CollectRows(rows, pgx.RowToStructByPos[reportedReader]); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, `SELECT project, relation::text, readers::text[]
		FROM tailor.projects ORDER BY 1, 2`)
	if err != nil {
		return err
	}
	r.Projects, err = pgx.CollectRows(rows, pgx.RowToStructByPos[reportedProject])
	return err
}

// readWriters reads which readers can do more than read releases.
func (r *report) readWriters(ctx context.Context, tx pgx.Tx) error {
	for i := range r.Tables {
		t := &r.Tables[i]
		err := tx.QueryRow(ctx, `
			SELECT coalesce((
				SELECT array_agg(m ORDER BY m) FROM (
					SELECT DISTINCT m::text FROM tailor.reader_roles() m, tailor.family($1::oid::regclass) f
					WHERE m <> 'tailor_reader' AND (has_any_column_privilege(m, f, 'INSERT, UPDATE')
						OR has_table_privilege(m, f, 'INSERT, UPDATE'))) w (m)), '{}'),
				coalesce((SELECT array_agg(DISTINCT w.reader::text ORDER BY w.reader::text)
					FROM tailor.ways($1::oid::regclass, ARRAY(SELECT tailor.reader_roles())) w), '{}')`,
			t.oid).Scan(&t.Writers, &t.Bypasses)
		if err != nil {
			return err
		}
	}
	return nil
}

// exceptions are what weakens the guarantee by intent, or by rights that readers have.
func (r *report) exceptions() []string {
	out := []string{}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for i := range r.Tables {
		t := &r.Tables[i]
		d := &t.document
		if d.Departures == "at_once" {
			say("%s: departures are shown at once. Whoever knows who has left sees, by comparing "+
				"two answers, what the row held.", t.Name)
		}
		if d.Changes == "at_once" {
			say("%s: changes are shown at once. Whoever knows whose value has changed sees, by "+
				"comparing two answers, what it was and is.", t.Name)
		}
		for _, c := range d.Columns {
			if c.SharedFact == "accepted" {
				say("%s: column %s is shown although another table may tell the same of the same "+
					"people (shared fact, accepted). Whoever reads both can put the classes of the "+
					"two together by it.", t.Name, c.Name)
			}
		}
		if len(d.Require) > 0 && d.Cuts != "blind" && d.DataSetOf == nil {
			say("%s: classes are made with regard to sensitive values (cuts are not blind). That "+
				"a class was not made smaller can tell a little of the values in it.", t.Name)
		}
		if d.Scope == "project" {
			say("%s: each project has a release of its own. What the readers of two projects find "+
				"out together is not bounded.", t.Name)
		}
		if len(t.Writers) > 0 {
			say("%s: readers who can write rows know them again in a class, and of a class in "+
				"which all rows but one are theirs whose the last one is: %s.", t.Name,
				strings.Join(t.Writers, ", "))
		}
		if len(t.Bypasses) > 0 {
			say("%s: readers who can read the table itself, past Tailor: %s.", t.Name,
				strings.Join(t.Bypasses, ", "))
		}
	}
	for _, s := range r.FreshStarts {
		if s.Table == "" {
			say("all tables: a restored database was accepted on %s. What was shown between the dump "+
				"and that, and what is shown since, can be put together.", day(s.Latest))
			continue
		}
		say("%s: readers were shown it anew, %s so far, on %s last (tailor.forget_chains). What was "+
			"shown before and what is shown since can be put together, and tell more than one of them.",
			s.Table, counted(s.Times, "time", "times"), day(s.Latest))
	}
	for _, e := range r.Erasures {
		if e.Departures == "at_once" {
			say("%s: of erasures on request, %d ever took the person's rows alone, at once. "+
				"Whoever compares answers from before and after knows what these rows held.",
				e.Table, e.Ever)
		}
	}
	return out
}
