package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

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
	a := &application{file: f, anew: o.forgetChains}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return a.run(ctx, tx) })
	if err != nil {
		err = refusal(ctx, "apply the policy", err)
		var refused *policyError
		if errors.As(err, &refused) && !strings.Contains(refused.remedy, nothingChanged) {
			err = &policyError{refused.what, refused.remedy + "; " + nothingChanged}
		}
		return err
	}
	if err := bringUpToDate(ctx, conn, o.dsn, a.activated); err != nil {
		fmt.Fprintln(o.notices, err) // the policy is in force all the same
	}
	for _, s := range a.scheduled {
		if _, err := fmt.Fprintln(stdout, s); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "applied: %d of %d tables activated%s\n", len(a.activated),
		len(f.Tables), listAfterColon(a.activated))
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
// planned would not be what is in force after the other. Plans are short, and are waited for.
func applyAlone(ctx context.Context, tx pgx.Tx, patience time.Duration) error {
	if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '20s'`); err != nil {
		return err
	}
	for started := time.Now(); ; {
		var alone bool
		err := tx.QueryRow(ctx, `SELECT tailor.apply_alone()`).Scan(&alone)
		if err != nil || alone {
			return err
		}
		if time.Since(started) >= patience {
			return &policyError{
				"another policy is being applied to this database",
				"plan again when it is done",
			}
		}
		if _, err := tx.Exec(ctx, `SELECT pg_catalog.pg_sleep(0.1)`); err != nil {
			return err
		}
	}
}

// application puts a file in force, or rehearses that.
type application struct {
	file    *policyfile.File
	anew    []string                // tables whose chains are forgotten
	refused map[string]*policyError // of a rehearsal: by table, hierarchy or reader; else nil

	tx        pgx.Tx
	present   *policyfile.File
	changed   []*policyfile.Table
	activated []string
	scheduled []string // in words
	taken     []string // of a rehearsal: privileges of readers, in words
}

func (a *application) run(ctx context.Context, tx pgx.Tx) (err error) {
	a.tx = tx
	if err := assertInstalled(ctx, tx); err != nil {
		return err
	}
	patience := time.Duration(0)
	if a.refused != nil {
		patience = 20 * time.Second
	}
	if err := applyAlone(ctx, tx, patience); err != nil {
		return err
	}
	if a.present, err = inForce(ctx, tx); err != nil {
		return err
	}
	if err := a.compare(ctx); err != nil {
		return err
	}
	for _, h := range a.file.Hierarchies {
		if !usedBy(a.changed, h.Name) {
			continue
		}
		if err := a.step(ctx, fmt.Sprintf("hierarchy %q", h.Name), func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `CALL tailor.define_hierarchy($1, $2, $3::jsonb)`, h.Name, h.Type,
				h.Definition())
			return err
		}); err != nil {
			return err
		}
	}
	for _, t := range a.changed {
		if err := a.step(ctx, t.Name, func(tx pgx.Tx) error { return a.draft(ctx, tx, t) }); err != nil {
			return err
		}
	}
	if err := a.grantReaders(ctx); err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	for _, t := range a.changed {
		if err := a.activate(ctx, t.Name); err != nil {
			return err
		}
	}
	for i := range a.file.Tables { // a schedule is no part of a version: it needs no new copy
		if err := a.schedule(ctx, &a.file.Tables[i]); err != nil {
			return err
		}
	}
	return a.inStep(ctx)
}

// step does what may be refused. A rehearsal goes on with what else there is.
func (a *application) step(ctx context.Context, about string, do func(tx pgx.Tx) error) error {
	if a.refused == nil {
		return refusal(ctx, about, do(a.tx))
	}
	if a.refused[about] != nil {
		return nil
	}
	err := pgx.BeginFunc(ctx, a.tx, do)
	var refused *policyError
	if errors.As(refusal(ctx, "", err), &refused) {
		a.refused[about] = refused
		return nil
	}
	return refusal(ctx, about, err)
}

// compare finds what is not in force as the file has it.
func (a *application) compare(ctx context.Context) error {
	for _, t := range tablesFirst(a.file) {
		if err := assertQuery(ctx, a.tx, t); err != nil {
			return err
		}
		r, err := findTable(ctx, a.tx, t)
		if isToBeDefined(t, err) {
			a.changed = append(a.changed, t)
			continue
		}
		if err != nil {
			return err
		}
		same, err := isInForce(ctx, a.tx, a.file, t, a.present, r)
		if err != nil {
			return err
		}
		if !same || slices.Contains(a.anew, t.Name) {
			a.changed = append(a.changed, t)
		}
	}
	for _, name := range a.anew {
		if !slices.ContainsFunc(a.changed, func(t *policyfile.Table) bool { return t.Name == name }) {
			return &policyError{
				fmt.Sprintf("--forget-chains: there is no table %s in the file", name),
				"name it as the file does; nothing was changed",
			}
		}
	}
	return nil
}

// draft writes the draft of a table anew, and forgets its chains if that was asked for.
func (a *application) draft(ctx context.Context, tx pgx.Tx, t *policyfile.Table) error {
	// In a rehearsal its query is not run.
	if err := defineDataSet(ctx, tx, t, a.refused == nil); err != nil {
		return err
	}
	if err := writeDraftPolicy(ctx, tx, t); err != nil {
		return err
	}
	if !slices.Contains(a.anew, t.Name) {
		return nil
	}
	_, err := tx.Exec(ctx, `CALL tailor.begin_anew($1::text::regclass, renewed => false)`, t.Name)
	return err
}

// hold locks all tables that are activated, in one order with whatever else locks several.
func (a *application) hold(ctx context.Context) error {
	var names []string
	for _, t := range a.changed {
		if t.DataSet == nil && a.refused[t.Name] == nil {
			names = append(names, t.Name)
		}
	}
	return a.step(ctx, "locks", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `CALL tailor.hold_in_order($1::text[]::regclass[])`, names)
		return err
	})
}

func (a *application) activate(ctx context.Context, table string) error {
	call := `CALL tailor.activate($1::text::regclass)`
	if a.refused != nil {
		call = `CALL tailor.rehearse($1::text::regclass)`
	}
	return a.step(ctx, table, func(tx pgx.Tx) error {
		if a.refused != nil {
			var there bool
			if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, table).
				Scan(&there); err != nil || !there {
				return err // a data set to be
			}
		}
		if _, err := tx.Exec(ctx, call, table); err != nil {
			return err
		}
		if !slices.Contains(a.activated, table) {
			a.activated = append(a.activated, table)
		}
		return nil
	})
}

// schedule has a table refreshed as the file says, which may be never.
func (a *application) schedule(ctx context.Context, t *policyfile.Table) error {
	r, err := findTable(ctx, a.tx, t)
	if isToBeDefined(t, err) {
		return nil
	}
	if err != nil {
		return err
	}
	was, is := periodOf(tableOf(a.present, r)), t.Period()
	if was == is {
		return nil
	}
	var seconds *float64
	if s := t.Refresh.Seconds(); s > 0 {
		seconds = &s
	}
	return a.step(ctx, t.Name, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `CALL tailor.schedule($1::text::regclass, make_interval(secs =>
			$2), $3)`, t.Name, seconds, t.OnChange); err != nil {
			return err
		}
		a.scheduled = append(a.scheduled, fmt.Sprintf("%s: refresh: %s -> %s", t.Name, orNever(was),
			orNever(is)))
		return nil
	})
}

// periodOf is how often a table is refreshed, "" for never.
func periodOf(t *policyfile.Table) string {
	if t == nil {
		return ""
	}
	return t.Period()
}

// inStep activates tables that do not hold what their parents lend by now. What
// belongs to somebody else is lent to nobody here, and what has been shown without goes on so.
func (a *application) inStep(ctx context.Context) error {
	p := &comparison{tx: a.tx, file: a.file, present: a.present}
	for i := range a.file.Tables {
		t := &a.file.Tables[i]
		if t.DataSet != nil {
			continue
		}
		var behind bool
		if err := a.tx.QueryRow(ctx,
			`SELECT coalesce(NOT tailor.in_step(r), false) AND NOT EXISTS (SELECT
				FROM tailor.parents(r, NULL) f WHERE NOT tailor.owns(f))
			FROM (SELECT $1::text::regclass AS r) t`, t.Name).Scan(&behind); err != nil {
			return err
		}
		if !behind {
			continue
		}
		if !slices.Contains(a.activated, t.Name) {
			r, err := findTable(ctx, a.tx, t)
			if err != nil {
				return err
			}
			other, _, err := p.otherwise(ctx, t, r)
			if err != nil {
				return err
			}
			if other {
				continue
			}
		}
		if err := a.activate(ctx, t.Name); err != nil {
			return err
		}
	}
	return nil
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

// grantReaders makes readers of the roles that are none yet. Nobody is removed:
// a reader who is not in this file may be in another.
func (a *application) grantReaders(ctx context.Context) error {
	present, err := readerRoles(ctx, a.tx)
	if err != nil {
		return err
	}
	for _, t := range a.file.Tables {
		for _, name := range t.Readers {
			if slices.Contains(present, name) {
				continue
			}
			if err := a.step(ctx, fmt.Sprintf("reader %q", name), func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `CALL tailor.grant_reader($1)`, name)
				return err
			}); err != nil {
				return err
			}
			present = append(present, name)
		}
	}
	return nil
}
