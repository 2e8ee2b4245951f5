package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize/identify"
	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// survey is what a schema has that a policy can be about.
type survey struct {
	tables []*surveyedTable // those that others refer to come first
	// out are the tables that are left out, each with the reason.
	out []string
	// refers has the column that a foreign key refers to, by the column that refers.
	refers map[tableColumn]tableColumn
}

// tableColumn is a column of a table, whose name is as SQL reads it.
type tableColumn struct{ table, column string }

// surveyedTable is a table with what was measured of it, and what was answered.
type surveyedTable struct {
	name    string // as SQL reads it
	rows    int
	share   float64 // of the rows that were looked at
	columns []*surveyedColumn
	// open says that everybody may read the table: it can hardly be about people.
	open bool
	// keys are its foreign keys: the column here, and the column that it refers to.
	keys     []foreignKey
	referred bool // another table refers to it

	dependencies []identify.Dependency

	subject string
	leave   bool // it is to be left out
}

type foreignKey struct {
	column string
	to     tableColumn
}

// surveyedColumn is a column with what classify says of it, and what was answered.
type surveyedColumn struct {
	*identify.Column
	says    identify.Suggestion
	singles float64 // percentage of the rows that alone have their value
	// hierarchy is the one that is proposed, nil if none fits the type.
	hierarchy *policyfile.Hierarchy
	unordered bool // its values cannot be told to be equal, as models ask
	endless   bool // some values are NaN or infinite
	// suggested and answer are letters; answer is 0 until there is one.
	suggested, answer byte
	// uncovered is a value without a place in the hierarchy, which has the column hidden.
	uncovered string
}

// column finds one by name, nil if there is none.
func (t *surveyedTable) column(name string) *surveyedColumn {
	for _, c := range t.columns {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// repeats says that a subject has several rows.
func (t *surveyedTable) repeats() bool {
	c := t.column(t.subject)
	return c != nil && c.Distinct < c.Rows
}

// surveySchema finds the tables of a schema and measures them, in one snapshot. k is the largest
// that may be chosen. Tables that a role may not read are left out, whatever the connection may;
// without a name the connection's role counts alone.
func surveySchema(
	ctx context.Context, dsn, schema, role string, k int, status func(string),
) (*survey, error) {
	s := &survey{refers: make(map[tableColumn]tableColumn)}
	err := inSnapshot(ctx, dsn, func(tx pgx.Tx) error {
		if err := assertInstalled(ctx, tx); err != nil {
			return err
		}
		names, err := s.list(ctx, tx, schema, role)
		if err != nil {
			return err
		}
		for i, name := range names {
			status(fmt.Sprintf("measuring %s, %d of %d tables",
				s.tables[i].name, i+1, len(names)))
			if err := s.tables[i].measure(ctx, tx, name, k); err != nil {
				return refusal(ctx, s.tables[i].name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.tables = slices.DeleteFunc(s.tables, func(t *surveyedTable) bool {
		if t.rows == 0 {
			s.out = append(s.out, t.name+": it is empty")
		}
		return t.rows == 0
	})
	s.parentsFirst()
	return s, nil
}

// selectTables lists what a schema has, with the reason for what cannot be protected, as
// activation would give it.
const selectTables = `
SELECT c.oid::oid, c.relname::text,
       CASE WHEN c.relkind = 'v' THEN 'a view; protect the tables that it reads'
            WHEN c.relkind = 'm' THEN 'a materialized view; a data set would protect its query'
            WHEN c.relkind = 'f' THEN 'a foreign table; protect it where it is stored'
            WHEN c.relispartition OR EXISTS (
                SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid)
                THEN 'a part of another table, and protected where that is'
            WHEN EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = c.oid
                AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype = 'e')
                THEN 'it belongs to an extension'
            WHEN EXISTS (SELECT FROM tailor.policies p
                WHERE p.relation = c.oid AND p.policy IS NOT NULL)
                THEN 'it is protected; tailor policy export writes its policy'
            WHEN $2 <> '' AND NOT pg_catalog.has_table_privilege($2, c.oid, 'SELECT')
                THEN pg_catalog.format('%I may not read it', $2)
            WHEN NOT pg_catalog.has_table_privilege(c.oid, 'SELECT')
                THEN pg_catalog.format('%I may not read it; GRANT SELECT ON %s TO %1$I lets it',
                    current_user, c.oid::pg_catalog.regclass)
            WHEN c.relrowsecurity THEN 'it has row-level security'
            ELSE '' END,
       EXISTS (SELECT FROM pg_catalog.aclexplode(c.relacl) a
               WHERE a.grantee = 0 AND a.privilege_type = 'SELECT')
FROM pg_catalog.pg_class c
WHERE c.relnamespace = pg_catalog.to_regnamespace(pg_catalog.quote_ident($1))
  AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
ORDER BY c.relname`

// list finds the tables, and says which are left out. It returns their names.
func (s *survey) list(
	ctx context.Context, tx pgx.Tx, schema, role string,
) ([]pgx.Identifier, error) {
	var there bool
	err := tx.QueryRow(ctx,
		`SELECT pg_catalog.to_regnamespace(pg_catalog.quote_ident($1)) IS NOT NULL`, schema,
	).Scan(&there)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, &policyError{
			fmt.Sprintf("there is no schema %q", schema), "name one as PostgreSQL stores it",
		}
	}
	rows, err := tx.Query(ctx, selectTables, schema, role)
	if err != nil {
		return nil, err
	}
	var (
		oid          uint32
		name, reason string
		open         bool
		names        []pgx.Identifier
	)
	_, err = pgx.ForEachRow(rows, []any{&oid, &name, &reason, &open}, func() error {
		full := pgx.Identifier{schema, name}
		if reason != "" {
			s.out = append(s.out, quoteTable(full)+": "+reason)
			return nil
		}
		names = append(names, full)
		s.tables = append(s.tables, &surveyedTable{name: quoteTable(full), open: open})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return names, s.readKeys(ctx, tx)
}

// readKeys reads the foreign keys of one column, of all schemas.
func (s *survey) readKeys(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT n.nspname::text, c.relname::text, a.attname::text,
		       m.nspname::text, d.relname::text, b.attname::text
		FROM pg_catalog.pg_constraint f
		JOIN pg_catalog.pg_class c ON c.oid = f.conrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = f.conkey[1]
		JOIN pg_catalog.pg_class d ON d.oid = f.confrelid
		JOIN pg_catalog.pg_namespace m ON m.oid = d.relnamespace
		JOIN pg_catalog.pg_attribute b ON b.attrelid = d.oid AND b.attnum = f.confkey[1]
		WHERE f.contype = 'f' AND cardinality(f.conkey) = 1 AND f.conrelid <> f.confrelid
		ORDER BY f.conname, f.oid`)
	if err != nil {
		return err
	}
	here, there := make(pgx.Identifier, 2), make(pgx.Identifier, 2)
	var from, to string
	into := []any{&here[0], &here[1], &from, &there[0], &there[1], &to}
	_, err = pgx.ForEachRow(rows, into, func() error {
		s.addKey(tableColumn{quoteTable(here), from}, tableColumn{quoteTable(there), to})
		return nil
	})
	return err
}

func (s *survey) addKey(from, to tableColumn) {
	if _, known := s.refers[from]; !known {
		s.refers[from] = to
	}
	for _, t := range s.tables {
		if t.name == from.table {
			t.keys = append(t.keys, foreignKey{from.column, to})
		}
		t.referred = t.referred || t.name == to.table
	}
}

// measure has classify look at the table.
func (t *surveyedTable) measure(
	ctx context.Context, tx pgx.Tx, name pgx.Identifier, k int,
) error {
	measured, err := catalog.Identify(ctx, tx, name)
	if err != nil {
		return err
	}
	endless := make(map[string]bool)
	for _, c := range measured.Columns {
		if endless[c.Name], err = findEnds(ctx, tx, name, c); err != nil {
			return err
		}
	}
	t.look(&classified{table: t.name, Identification: measured, named: k})
	stored, err := catalog.LoadColumns(ctx, tx, t.name)
	if err != nil {
		return err
	}
	for _, c := range t.columns {
		ordered, err := catalog.HasOrder(ctx, tx, stored.Column(c.Name))
		if err != nil {
			return err
		}
		c.unordered = !ordered
		if c.endless = endless[c.Name]; c.endless {
			c.hierarchy = nil
		}
	}
	t.suggest()
	return nil
}

// findEnds has ranges and days hold the values of all rows, of which a sample may have missed
// some, and says whether some are NaN or infinite: these are in no range.
func findEnds(
	ctx context.Context, tx pgx.Tx, name pgx.Identifier, c *identify.Column,
) (endless bool, err error) {
	e, column := &c.Evidence, pgx.Identifier{c.Name}.Sanitize()
	const query = `SELECT coalesce(bool_or(v::text ~* '^(NaN|-?infinity)$'), false),
		min(v) FILTER (WHERE %[1]s)%[2]s, max(v) FILTER (WHERE %[1]s)%[2]s
		FROM (SELECT %[3]s AS v FROM %[4]s) t`
	switch {
	case e.Range != nil:
		var low, high *float64
		err = tx.QueryRow(ctx, fmt.Sprintf(query, "v - v = 0", "", column+"::float8",
			name.Sanitize())).Scan(&endless, &low, &high)
		if low != nil && high != nil {
			e.Range.Low, e.Range.High = *low, *high
		}
	case e.FirstDay != "":
		var first, last *string
		err = tx.QueryRow(ctx, fmt.Sprintf(query, "isfinite(v)", "::text", column,
			name.Sanitize())).Scan(&endless, &first, &last)
		if first != nil && last != nil {
			e.FirstDay, e.LastDay = *first, *last
		}
	}
	return endless, err
}

// look keeps what classify finds, but for the cells.
func (t *surveyedTable) look(c *classified) {
	t.rows, t.share = c.Rows, c.Share
	for _, k := range c.Columns {
		t.columns = append(t.columns, &surveyedColumn{Column: k})
	}
	subject := t.suggestSubject(c.Subject)
	o := &classifyOptions{thresholds: identify.DefaultThresholds(), subject: subject}
	c.together(o)
	t.dependencies = c.dependencies
	shown := c.shown
	for i, k := range t.columns {
		k.says = k.Suggest(o.thresholds, false)
		k.singles = singlesOf(c.Cells.Codes[i])
		c.shown = shown
		if !slices.Contains(shown.Names, k.Name) { // it may be answered to be shown
			c.shown = c.Cells.Of(append(slices.Clone(shown.Names), k.Name))
		}
		k.hierarchy = guessHierarchy(k.Column, c)
	}
	t.subject = subject
}

// singlesOf is the percentage of the rows that alone have their value.
func singlesOf(codes []uint32) float64 {
	counts := make(map[uint32]int)
	for _, code := range codes {
		counts[code]++
	}
	alone := 0
	for _, n := range counts {
		if n == 1 {
			alone++
		}
	}
	return 100 * float64(alone) / float64(max(1, len(codes)))
}

// suggestSubject says whom rows are about, "" if nothing tells. That is the table's own key if
// others refer to it, or if it names people; else whoever a foreign key refers to, the most
// different ones, since several rows may be of one person then.
func (t *surveyedTable) suggestSubject(primary string) string {
	own := primary
	if own == "" {
		var columns []*identify.Column
		for _, c := range t.columns {
			columns = append(columns, c.Column)
		}
		own = keyOf(columns)
	}
	people := slices.ContainsFunc(t.columns, func(c *surveyedColumn) bool {
		return !c.Key && c.NamesPeople()
	})
	if own != "" && (t.referred || people) {
		return own
	}
	var widest *surveyedColumn
	for _, k := range t.keys {
		c := t.column(k.column)
		if c.Missing == 0 && (widest == nil || c.Distinct > widest.Distinct) {
			widest = c
		}
	}
	if widest != nil {
		return widest.Name
	}
	return own
}

// suggest starts with the defaults.
func (t *surveyedTable) suggest() {
	t.setSubject(t.subject)
	t.leave = t.open || t.subject == ""
}

// setSubject takes a column as the subject, and suggests the classes of the others. The table
// need not be left out any more.
func (t *surveyedTable) setSubject(name string) {
	t.subject, t.leave = name, false
	for _, c := range t.columns {
		c.suggested = c.letter()
	}
	if c := t.codes(); c != nil {
		c.suggested = asCodes
	}
}

// codes is the column of codes of which each subject has a set: the only sensitive one beside
// keys and what is hidden, if a subject has several rows. It is nil otherwise.
func (t *surveyedTable) codes() *surveyedColumn {
	var found *surveyedColumn
	for _, c := range t.columns {
		switch {
		case c.Name == t.subject || c.suggested == asHidden:
		case found != nil || c.suggested != asSensitive || !c.isCode() || !t.repeats():
			return nil
		default:
			found = c
		}
	}
	return found
}

// parentsFirst sorts tables behind those that their subjects refer to.
func (s *survey) parentsFirst() {
	depth := func(t *surveyedTable) int {
		n := 0
		for at := (tableColumn{t.name, t.subject}); n <= len(s.refers); n++ {
			next, refers := s.refers[at]
			if !refers {
				break
			}
			at = next
		}
		return n
	}
	slices.SortStableFunc(s.tables, func(a, b *surveyedTable) int {
		return cmp.Compare(depth(a), depth(b))
	})
}

// root is where the foreign keys end that lead from the subject of a table: tables with one
// root are about the same people.
func (s *survey) root(t *surveyedTable) tableColumn {
	at := tableColumn{t.name, t.subject}
	for range s.refers { // keys may lead in a circle
		next, refers := s.refers[at]
		if !refers {
			break
		}
		at = next
	}
	return at
}
