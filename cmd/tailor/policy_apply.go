package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// applyPolicy puts a file in force in one transaction: on an error nothing is
// changed. Tables whose policy is in force already keep their copy.
func applyPolicy(ctx context.Context, o *policyOptions, stdout io.Writer) error {
	f, err := readPolicy(o.file)
	if err != nil {
		return err
	}
	conn, err := connectTo(ctx, o.dsn, func(message string) { fmt.Fprintln(o.notices, message) })
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	var activated []string
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := assertInstalled(ctx, tx); err != nil {
			return err
		}
		if err := applyAlone(ctx, tx); err != nil {
			return err
		}
		activated, err = applyFile(ctx, tx, f)
		return err
	})
	if err != nil {
		return refusal(ctx, "apply the policy", err)
	}
	if err := bringUpToDate(ctx, conn, o.dsn, activated); err != nil {
		fmt.Fprintln(o.notices, err) // the policy is in force all the same
	}
	_, err = fmt.Fprintf(stdout, "applied: %d of %d tables activated%s\n", len(activated),
		len(f.Tables), listAfterColon(activated))
	return err
}

func listAfterColon(names []string) string {
	out := ""
	for i, n := range names {
		out += map[bool]string{true: ": ", false: ", "}[i == 0] + n
	}
	return out
}

// applyAlone keeps two administrators from applying at once: what one of them
// planned would not be what is in force after the other.
func applyAlone(ctx context.Context, tx pgx.Tx) error {
	var alone bool
	if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '20s'`); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, `SELECT tailor.apply_alone()`).Scan(&alone); err != nil {
		return err
	}
	if !alone {
		return &policyError{
			"another policy is being applied to this database",
			"plan again when it is done",
		}
	}
	return nil
}

// applyFile returns the tables that were activated.
func applyFile(ctx context.Context, tx pgx.Tx, f *policyfile.File) ([]string, error) {
	var changed, scheduled []*policyfile.Table
	present, err := inForce(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, t := range tablesFirst(f) {
		if err := assertQuery(ctx, tx, t); err != nil {
			return nil, err
		}
		r, err := findTable(ctx, tx, t)
		if isToBeDefined(t, err) {
			changed = append(changed, t)
			continue
		}
		if err != nil {
			return nil, err
		}
		same, err := isInForce(ctx, tx, f, t, present, r)
		if err != nil {
			return nil, err
		}
		if !same {
			changed = append(changed, t)
		}
		if now := tableOf(present, r); now == nil && t.Refresh > 0 || now != nil &&
			now.Period() != t.Period() {
			scheduled = append(scheduled, t)
		}
	}
	for _, h := range f.Hierarchies {
		if !usedBy(changed, h.Name) {
			continue
		}
		if _, err := tx.Exec(ctx, `CALL tailor.define_hierarchy($1, $2, $3::jsonb)`, h.Name, h.Type,
			h.Definition()); err != nil {
			return nil, refusal(ctx, fmt.Sprintf("hierarchy %q", h.Name), err)
		}
	}
	for _, t := range changed {
		if err := defineDataSet(ctx, tx, t); err != nil {
			return nil, err
		}
		if err := writeDraftPolicy(ctx, tx, t); err != nil {
			return nil, refusal(ctx, t.Name, err)
		}
	}
	if err := grantReaders(ctx, tx, f); err != nil {
		return nil, err
	}
	var activated []string
	for _, t := range changed {
		if _, err := tx.Exec(ctx, `CALL tailor.activate($1::text::regclass)`, t.Name); err != nil {
			return nil, refusal(ctx, t.Name, err)
		}
		activated = append(activated, t.Name)
	}
	for _, t := range scheduled { // a schedule is no part of a version: it needs no new copy
		var seconds *float64
		if s := t.Refresh.Seconds(); s > 0 {
			seconds = &s
		}
		if _, err := tx.Exec(ctx, `CALL tailor.schedule($1::text::regclass, make_interval(secs =>
			$2), $3)`, t.Name, seconds, t.OnChange); err != nil {
			return nil, refusal(ctx, t.Name, err)
		}
	}
	return inStep(ctx, &comparison{tx: tx, file: f, present: present}, activated)
}

// inStep activates tables that do not hold what their parents lend by now. What
// belongs to somebody else is lent to nobody here, and what has been shown without goes on so.
func inStep(ctx context.Context, p *comparison, activated []string) ([]string, error) {
	tx := p.tx
	for i := range p.file.Tables {
		t := &p.file.Tables[i]
		name := t.Name
		var behind bool
		if err := tx.QueryRow(ctx,
			`SELECT coalesce(NOT tailor.in_step(r), false) AND NOT EXISTS (SELECT
				FROM tailor.parents(r, NULL) f WHERE NOT tailor.owns(f))
			FROM (SELECT $1::text::regclass AS r) t`, name).Scan(&behind); err != nil {
			return nil, err
		}
		if behind && t.DataSet == nil && !slices.Contains(activated, name) {
			r, err := findTable(ctx, tx, t)
			if err != nil {
				return nil, err
			}
			other, _, err := p.otherwise(ctx, t, r)
			if err != nil {
				return nil, err
			}
			behind = !other
		}
		if !behind {
			continue
		}
		if _, err := tx.Exec(ctx, `CALL tailor.activate($1::text::regclass)`, name); err != nil {
			return nil, refusal(ctx, name, err)
		}
		if !slices.Contains(activated, name) {
			activated = append(activated, name)
		}
	}
	return activated, nil
}

func usedBy(tables []*policyfile.Table, hierarchy string) bool {
	return slices.ContainsFunc(tables, func(t *policyfile.Table) bool {
		return slices.ContainsFunc(t.Columns, func(c policyfile.Column) bool {
			return c.Hierarchy == hierarchy
		})
	})
}

// findTable looks up a table of the file and asserts that it has the columns.
func findTable(ctx context.Context, tx pgx.Tx, t *policyfile.Table) (*catalog.Relation, error) {
	r, err := catalog.LoadColumns(ctx, tx, t.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errNoTable(t)
	}
	if err != nil {
		return nil, err
	}
	for _, c := range t.Columns {
		if r.Column(c.Name) == nil {
			return nil, &policyError{fmt.Sprintf("line %d: table %s has no column %q", c.Line, t.Name,
				c.Name), "name it as PostgreSQL stores it; nothing was changed"}
		}
	}
	if r.Column(t.Subject) == nil {
		return nil, &policyError{fmt.Sprintf("line %d: table %s has no column %q to be the subject",
			t.Line, t.Name, t.Subject), "name it as PostgreSQL stores it; nothing was changed"}
	}
	return r, nil
}

// isInForce says whether a table's policy is in force as the file has it, on a
// table that has not changed since.
func isInForce(
	ctx context.Context, tx pgx.Tx, f *policyfile.File, t *policyfile.Table, present *policyfile.File,
	r *catalog.Relation,
) (bool, error) {
	now := tableOf(present, r)
	if now == nil || len(difference(present, now, f, t)) > 0 {
		return false, nil
	}
	var fresh bool
	err := tx.QueryRow(ctx,
		`SELECT p.policy ->> 'fingerprint' = tailor.fingerprint(p.relation) FROM tailor.policies p
			WHERE p.relation = $1`, r.OID).Scan(&fresh)
	return fresh, err
}

// tableOf finds the policy in force of a relation, nil for none.
func tableOf(present *policyfile.File, r *catalog.Relation) *policyfile.Table {
	name := quoteTable(pgx.Identifier{r.Schema, r.Name})
	for i := range present.Tables {
		if present.Tables[i].Name == name {
			return &present.Tables[i]
		}
	}
	return nil
}

// writeDraftPolicy writes the draft of a table anew.
func writeDraftPolicy(ctx context.Context, tx pgx.Tx, t *policyfile.Table) error {
	call := func(sql string, args ...any) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	}
	if err := call(`CALL tailor.protect($1::text::regclass, $2, $3)`, t.Name, t.Subject,
		t.K); err != nil {
		return err
	}
	if err := call(`CALL tailor.clear_draft($1::text::regclass)`, t.Name); err != nil {
		return err
	}
	for _, c := range t.Columns {
		var hierarchy *string
		if c.Hierarchy != "" {
			hierarchy = &c.Hierarchy
		}
		if err := call(`CALL tailor.classify($1::text::regclass, $2, $3, hierarchy => $4, action => $5)`,
			t.Name, c.Name, c.Class, hierarchy, c.Action); err != nil {
			return err
		}
	}
	for _, c := range t.Columns {
		if !c.Middle && !c.NoMargins {
			continue
		}
		representative := "raked"
		if c.Middle {
			representative = "middle"
		}
		if err := call(`CALL tailor.represent($1::text::regclass, $2, $3, $4)`, t.Name, c.Name,
			representative, !c.NoMargins); err != nil {
			return err
		}
	}
	for _, c := range t.Columns {
		if !c.SharedFact {
			continue
		}
		if err := call(`CALL tailor.shared_fact($1::text::regclass, $2, 'accepted')`, t.Name,
			c.Name); err != nil {
			return err
		}
	}
	for _, q := range t.Require {
		err := call(`CALL tailor.require($1::text::regclass, $2, $3, $4, nullif($5::float8, 0),
			nullif($6, ''))`, t.Name, q.Model, q.Column, q.Parameter, q.C, q.Distance)
		if err != nil {
			return err
		}
	}
	if err := call(`CALL tailor.chain_scope($1::text::regclass, $2)`, t.Name, t.Scope); err != nil {
		return err
	}
	if err := call(`CALL tailor.recode($1::text::regclass, $2)`, t.Name, t.Recoding); err != nil {
		return err
	}
	if g := t.Gate; g != nil {
		if err := call(`CALL tailor.gate($1::text::regclass, $2, $3)`, t.Name, g.Measure,
			g.MaxRisk); err != nil {
			return err
		}
	}
	if t.MaxShare > 0 {
		if err := call(`CALL tailor.max_share($1::text::regclass, $2)`, t.Name, t.MaxShare); err != nil {
			return err
		}
	}
	if t.Cohort > 0 {
		if err := call(`CALL tailor.cohort($1::text::regclass, $2)`, t.Name, t.Cohort); err != nil {
			return err
		}
	}
	if t.BlindCuts {
		if err := call(`CALL tailor.cuts($1::text::regclass, 'blind')`, t.Name); err != nil {
			return err
		}
	}
	if t.DeparturesAtOnce {
		if err := call(`CALL tailor.departures($1::text::regclass, 'at_once')`, t.Name); err != nil {
			return err
		}
	}
	if t.ChangesAtOnce {
		if err := call(`CALL tailor.changes($1::text::regclass, 'at_once')`, t.Name); err != nil {
			return err
		}
	}
	if x := t.Indexes; x != nil {
		if err := call(`CALL tailor.indexes($1::text::regclass, coalesce($2::name[], '{}'),
			coalesce($3::name[], '{}'))`, t.Name, x.Add, x.Drop); err != nil {
			return err
		}
	}
	if s := t.SetValued; s != nil {
		if err := writeSetValued(ctx, tx, t.Name, s); err != nil {
			return err
		}
	}
	if t.AggregateOnly {
		if err := call(`CALL tailor.rows($1::text::regclass, false)`, t.Name); err != nil {
			return err
		}
	}
	if len(t.Seed) == 0 { // clear_draft has emptied it
		return nil
	}
	seed, err := json.Marshal(t.Seed)
	if err != nil {
		return err
	}
	return call(`CALL tailor.seed($1::text::regclass, $2::text::jsonb)`, t.Name, string(seed))
}

func writeSetValued(ctx context.Context, tx pgx.Tx, table string, s *policyfile.SetValued) error {
	var constraints *string
	var diversity *int
	if len(s.Constraints) > 0 {
		raw, err := json.Marshal(s.Constraints)
		if err != nil {
			return err
		}
		text := string(raw)
		constraints = &text
	}
	if s.Diversity > 0 {
		diversity = &s.Diversity
	}
	_, err := tx.Exec(ctx,
		`CALL tailor.set_valued($1::text::regclass, $2, m => $3, constraints => $4::text::jsonb,
			sensitive => $5, diversity => $6)`,
		table, s.Column, s.M, constraints, s.Sensitive, diversity)
	if err != nil || s.Joint == nil {
		return err
	}
	var size *int
	if s.Joint.GroupSize > 0 {
		size = &s.Joint.GroupSize
	}
	_, err = tx.Exec(ctx, `CALL tailor.joint($1::text::regclass, $2::name[], $3)`, table,
		s.Joint.Columns, size)
	return err
}

// grantReaders makes readers of the roles that are none yet. Nobody is removed:
// a reader who is not in this file may be in another.
func grantReaders(ctx context.Context, tx pgx.Tx, f *policyfile.File) error {
	present, err := readerRoles(ctx, tx)
	if err != nil {
		return err
	}
	for _, t := range f.Tables {
		for _, name := range t.Readers {
			if slices.Contains(present, name) {
				continue
			}
			if _, err := tx.Exec(ctx, `CALL tailor.grant_reader($1)`, name); err != nil {
				return refusal(ctx, fmt.Sprintf("reader %q", name), err)
			}
			present = append(present, name)
		}
	}
	return nil
}
