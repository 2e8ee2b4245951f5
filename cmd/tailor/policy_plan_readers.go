package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// readers says who would become a reader, and who is one without being named.
func (p *comparison) readers(ctx context.Context) error {
	present, err := readerRoles(ctx, p.tx)
	if err != nil {
		return err
	}
	var named []string
	for _, t := range p.file.Tables {
		for _, name := range t.Readers {
			if slices.Contains(named, name) {
				continue
			}
			named = append(named, name)
			if slices.Contains(present, name) {
				continue
			}
			p.line("readers: + %s", name)
			p.refused(fmt.Sprintf("reader %q", name))
		}
	}
	for _, name := range present {
		if named != nil && !slices.Contains(named, name) {
			p.line("readers: %s is one and not in this file; REVOKE tailor_reader FROM %s; would end that",
				name, pgx.Identifier{name}.Sanitize())
		}
	}
	return nil
}

// goesOn says of a table that has been shown whether it can go on with the quasi-identifiers of
// the file.
func (p *comparison) goesOn(
	ctx context.Context, t *policyfile.Table, r *catalog.Relation, inForce bool,
) error {
	other, lender, err := p.otherwise(ctx, t, r)
	if err != nil || !other {
		return err
	}
	forget := fmt.Sprintf("tailor.forget_chains('%s'), which has it shown anew and gives up the "+
		"guarantee over what was shown before", t.Name)
	if inForce && lender != "" {
		p.alone = append(p.alone, t.Name)
		p.line("  ? readers have been shown it without the quasi-identifiers of %s: it goes on so, and "+
			"joins of both by the key are refused, until it is activated and %s", lender, forget)
		return nil
	}
	p.line("  ? readers have been shown it by other quasi-identifiers: it is refused to them (KA004) "+
		"until %s", forget)
	return nil
}

// otherwise says of a table whether readers have been shown it by other quasi-identifiers than
// its policy in the file would have, and which table lends it some of those.
func (p *comparison) otherwise(
	ctx context.Context, t *policyfile.Table, r *catalog.Relation,
) (otherwise bool, lender string, err error) {
	relation, err := p.lent(ctx, p.file, t, r)
	if err != nil {
		return false, "", err
	}
	would := make([]string, 0, len(relation.Columns))
	for _, c := range relation.QuasiIdentifiers() {
		would = append(would, c.Name+" "+c.Type)
	}
	if relation.Parent != nil {
		lender = quoteTable(pgx.Identifier{relation.Parent.Schema, relation.Parent.Name})
		for _, c := range relation.Parent.Columns {
			would = append(would, c.Name+" "+c.Type)
		}
	}
	err = p.tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tailor.shown_by($1::oid::regclass) s
		WHERE coalesce(s, '{}') <> $2)`, r.OID, would).Scan(&otherwise)
	return otherwise, lender, err
}
