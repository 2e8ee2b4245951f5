package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// jointly says what codes lose by being published together with quasi-identifiers of their
// parent, if that is in the file.
func (p *comparison) jointly(ctx context.Context, t *policyfile.Table, r *catalog.Relation) error {
	if t.SetValued == nil || t.SetValued.Joint == nil {
		return nil
	}
	codes, err := p.shaped(ctx, p.file, t, r)
	if err != nil {
		return err
	}
	codes.SetValued = &catalog.SetValued{
		Column: t.SetValued.Column, M: t.SetValued.M, Constraints: t.SetValued.Constraints,
		Joint: &catalog.Joint{Columns: t.SetValued.Joint.Columns, GroupSize: t.SetValued.Joint.GroupSize},
	}
	for i := range p.file.Tables {
		of := &p.file.Tables[i]
		if of.DataSet != nil {
			continue
		}
		parent, err := findTable(ctx, p.tx, of)
		if err != nil {
			return err
		}
		var refers bool
		err = p.tx.QueryRow(ctx,
			`SELECT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE contype = 'f' AND conrelid = $1
				AND confrelid = $2)`,
			r.OID, parent.OID).Scan(&refers)
		if err != nil {
			return err
		}
		if !refers || parent.OID == r.OID {
			continue
		}
		shaped, err := p.shaped(ctx, p.file, of, parent)
		if err != nil {
			return err
		}
		lent := &catalog.Parent{
			Schema: parent.Schema, Name: parent.Name, Subject: of.Subject,
			InStep: true,
		}
		for _, c := range shaped.QuasiIdentifiers() {
			if slices.Contains(t.SetValued.Joint.Columns, c.Name) {
				lent.Columns = append(lent.Columns, *c)
			}
		}
		if len(lent.Columns) < len(t.SetValued.Joint.Columns) {
			lacks := slices.DeleteFunc(slices.Clone(t.SetValued.Joint.Columns), func(name string) bool {
				return slices.ContainsFunc(lent.Columns, func(c catalog.Column) bool { return c.Name == name })
			})
			p.obstacle("set_valued.joint: %s is no quasi-identifier of %s", strings.Join(lacks, ", "),
				of.Name)
			return nil
		}
		codes.Borrow(lent, of.K)
		f, err := catalog.NewJointForecast(ctx, p.tx, codes)
		if err != nil || f == nil {
			return err
		}
		p.line("  published with %s of %s, in groups of %d: how many of %d subjects have two codes is "+
			"off by %.1f %%, by %.1f %% without",
			strings.Join(t.SetValued.Joint.Columns, ", "), of.Name, f.GroupSize, f.Subjects, 100*f.Joint,
			100*f.Alone)
		p.line("  (median of %d pairs of codes that %d subjects or more have)", f.Pairs,
			catalog.LeastPair)
		return nil
	}
	return nil
}

// forecast asks the engine about the policy of a table.
func (p *comparison) forecast(
	ctx context.Context, f *policyfile.File, t *policyfile.Table, r *catalog.Relation,
) (*catalog.Forecast, error) {
	relation, err := p.lent(ctx, f, t, r)
	if err != nil {
		return nil, err
	}
	return catalog.NewForecast(ctx, p.tx, relation)
}

// lent is a table as its policy in a file would have it, with what it borrows.
func (p *comparison) lent(
	ctx context.Context, f *policyfile.File, t *policyfile.Table, r *catalog.Relation,
) (*catalog.Relation, error) {
	relation, err := p.shaped(ctx, f, t, r)
	if err != nil || slices.Contains(p.alone, t.Name) {
		return relation, err
	}
	of, parent, err := p.lender(ctx, f, t, r)
	if err == nil && of == nil && f != p.present { // one that is in force, and not in the file
		of, parent, err = p.lender(ctx, p.present, t, r)
	}
	if err != nil {
		return nil, err
	}
	if of != nil && t.SetValued == nil && len(parent.QuasiIdentifiers()) > 0 {
		lent := &catalog.Parent{Schema: parent.Schema, Name: parent.Name, Subject: of.Subject}
		for _, c := range parent.QuasiIdentifiers() {
			lent.Columns = append(lent.Columns, *c)
		}
		relation.Borrow(lent, of.K)
	}
	return relation, nil
}

// lender is the table of a file that a table borrows quasi-identifiers from: its subject refers to
// that one's. nil for none.
func (p *comparison) lender(
	ctx context.Context, f *policyfile.File, t *policyfile.Table, r *catalog.Relation,
) (*policyfile.Table, *catalog.Relation, error) {
	for i := range f.Tables {
		of := &f.Tables[i]
		if of.DataSet != nil || of.Name == t.Name {
			continue
		}
		parent, err := catalog.LoadColumns(ctx, p.tx, of.Name) // a policy in force may name others
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		var refers bool
		err = p.tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_constraint k
				JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND k.conkey = ARRAY[a.attnum]
				WHERE k.contype = 'f' AND k.conrelid = $1 AND k.confrelid = $2 AND a.attname = $3)`,
			r.OID, parent.OID, t.Subject).Scan(&refers)
		if err != nil {
			return nil, nil, err
		}
		if refers {
			shaped, err := p.shaped(ctx, f, of, parent)
			return of, shaped, err
		}
	}
	return nil, nil, nil
}
