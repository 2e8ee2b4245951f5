package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// noTableError says that a table of the file does not exist.
type noTableError struct{ *policyError }

func errNoTable(t *policyfile.Table) error {
	return noTableError{&policyError{
		fmt.Sprintf("line %d: there is no table %s", t.Line, t.Name),
		"views and foreign tables cannot be protected; nothing was changed",
	}}
}

func (e noTableError) Unwrap() error { return e.policyError }

// isToBeDefined says that what is missing is a data set, which the file has the query of.
func isToBeDefined(t *policyfile.Table, err error) bool {
	var missing noTableError
	return t.DataSet != nil && errors.As(err, &missing)
}

// tablesFirst are the tables of a file, data sets behind those that they are of.
func tablesFirst(f *policyfile.File) []*policyfile.Table {
	out := make([]*policyfile.Table, len(f.Tables))
	for i := range f.Tables {
		out[i] = &f.Tables[i]
	}
	slices.SortStableFunc(out, func(x, y *policyfile.Table) int {
		switch {
		case x.DataSet == nil && y.DataSet != nil:
			return -1
		case x.DataSet != nil && y.DataSet == nil:
			return 1
		}
		return 0
	})
	return out
}

// assertQuery fails where a relation that exists was not made of the file's query: what it
// holds is for its owner to drop.
func assertQuery(ctx context.Context, tx pgx.Tx, t *policyfile.Table) error {
	var is *policyfile.DataSet
	var schema, name, query *string
	err := tx.QueryRow(ctx,
		`SELECT d #>> '{data_set_of,schema}', d #>> '{data_set_of,name}', d #>> '{data_set_of,query}'
		FROM tailor.draft(to_regclass($1)) d`, t.Name).Scan(&schema, &name, &query)
	if err != nil {
		return refusal(ctx, t.Name, err)
	}
	if query != nil {
		is = &policyfile.DataSet{Of: quoteTable(pgx.Identifier{*schema, *name}), Query: *query}
	}
	var exists bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, t.Name).
		Scan(&exists); err != nil {
		return err
	}
	if !exists || is.String() == t.DataSet.String() {
		return nil
	}
	if is == nil {
		return &policyError{
			fmt.Sprintf("line %d: %s exists and is no data set", t.Line, t.Name),
			"give it another name; nothing was changed",
		}
	}
	return &policyError{
		fmt.Sprintf("line %d: %s was made of another query", t.Line, t.Name),
		fmt.Sprintf("CALL tailor.unprotect('%s'); and drop the materialized view, to have it made "+
			"anew, with --forget-chains %s; nothing was changed", t.Name, t.DataSet.Of),
	}
}

// defineDataSet makes a data set of its query, unless there is one.
func defineDataSet(ctx context.Context, tx pgx.Tx, t *policyfile.Table, filled bool) error {
	if t.DataSet == nil {
		return nil
	}
	var exists bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, t.Name).
		Scan(&exists); err != nil || exists {
		return err
	}
	if _, err := tx.Exec(ctx, `CALL tailor.define_dataset($1, $2, $3, $4::text::regclass,
			filled => $5)`, t.Name, t.DataSet.Query, t.Subject, t.DataSet.Of, filled); err != nil {
		return refusal(ctx, t.Name, err)
	}
	_, err := findTable(ctx, tx, t) // has it the columns?
	return err
}

// toBeDefined plans a data set that there is not yet. What it says is not computed for that.
func (p *comparison) toBeDefined(t *policyfile.Table) {
	p.protect++
	p.line("%s: to be made of its query, and protected", t.Name)
	for _, c := range difference(p.present, nil, p.file, t) {
		p.line("  %s", c)
	}
	p.line("  shown by the blocks of %s: risk and loss are those", t.DataSet.Of)
}
