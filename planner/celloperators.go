package planner

import (
	"fmt"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// ownComparisons gives every operator of a condition on rows its full name in
// pg_catalog: one found along search_path could be somebody else's, and would be
// called with the values of rows. IN, BETWEEN and IS DISTINCT FROM, which can
// name none, are written as the comparisons that they stand for.
//
// The condition is one that rowCondition accepts: operands are columns and
// values, so that the precedence of OPERATOR() changes nothing.
func (b *binder) ownComparisons(condition *pg.Node) error {
	for _, arg := range condition.GetBoolExpr().GetArgs() {
		if err := b.ownComparisons(arg); err != nil {
			return err
		}
	}
	e := condition.GetAExpr()
	if e == nil {
		return nil
	}
	compared := e.Lexpr
	if !isColumn(compared) {
		compared = e.Rexpr
	}
	r, err := b.resolve(b.cells.scope, compared.GetColumnRef())
	if err != nil {
		return err
	}
	if r.entry == nil {
		return b.refuseCells(start(compared), "rows are told apart by comparing a column with values")
	}
	if err := b.assertComparable(e, r.origin); err != nil {
		return err
	}
	at := b.tokenAt(int(e.Location))
	word := at
	if b.tokens[at].Token == pg.Token_NOT {
		word++
	}
	switch e.Kind {
	case pg.A_Expr_Kind_AEXPR_IN:
		return b.ownIn(e, r.value(), at, word)
	case pg.A_Expr_Kind_AEXPR_BETWEEN:
		return b.ownBetween(e, r.value(), at, word, ">=", "AND", "<=")
	case pg.A_Expr_Kind_AEXPR_NOT_BETWEEN:
		return b.ownBetween(e, r.value(), at, word, "<", "OR", ">")
	case pg.A_Expr_Kind_AEXPR_DISTINCT:
		return b.ownDistinct(e, at, "IS NOT TRUE")
	case pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		return b.ownDistinct(e, at, "IS TRUE")
	}
	if len(e.Name) > 1 {
		return nil // it has its schema, which is pg_catalog
	}
	if b.tokens[at].Token == pg.Token_OPERATOR {
		word = b.closing(at + 1) // OPERATOR(=)
	}
	return b.putOperator(at, word, "", last(e.Name))
}

// fullOperator names an operator of PostgreSQL's own.
func fullOperator(name string) string { return "OPERATOR(pg_catalog." + name + ")" }

// putOperator puts an operator, behind some text, in place of the tokens from
// first to last.
func (b *binder) putOperator(first, last int, before, name string) error {
	return b.replace(int(b.tokens[first].Start), int(b.tokens[last].End), before+fullOperator(name))
}

// ownIn writes x IN (a, b) as (x = a OR x = b).
func (b *binder) ownIn(e *pg.A_Expr, column string, at, word int) error {
	joint := " OR "
	if last(e.Name) == "<>" {
		joint = " AND "
	}
	if err := b.insert(start(e.Lexpr), "("); err != nil {
		return err
	}
	if err := b.putOperator(at, word+1, "", last(e.Name)); err != nil {
		return err
	}
	depth, end := 0, b.closing(word+1)
	for i := word + 1; i < end; i++ {
		switch b.tokens[i].Token {
		case pg.Token_ASCII_40:
			depth++
		case pg.Token_ASCII_41:
			depth--
		case pg.Token_ASCII_44:
			if depth > 1 {
				continue
			}
			if err := b.putOperator(i, i, joint+column+" ", last(e.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownBetween writes x BETWEEN a AND b as (x >= a AND x <= b).
func (b *binder) ownBetween(e *pg.A_Expr, column string, at, word int, first, joint, second string) error {
	and := word + 1
	for b.tokens[and].Token != pg.Token_AND {
		and++ // a value holds none
	}
	if err := b.insert(start(e.Lexpr), "("); err != nil {
		return err
	}
	if err := b.putOperator(at, word, "", first); err != nil {
		return err
	}
	if err := b.putOperator(and, and, joint+" "+column+" ", second); err != nil {
		return err
	}
	return b.insert(b.valueEnd(and+1), ")")
}

// ownDistinct writes x IS DISTINCT FROM a, where a is not NULL, as
// (x = a) IS NOT TRUE.
func (b *binder) ownDistinct(e *pg.A_Expr, at int, test string) error {
	from := at
	for b.tokens[from].Token != pg.Token_FROM {
		from++
	}
	if err := b.insert(start(e.Lexpr), "(("); err != nil {
		return err
	}
	if err := b.putOperator(at, from, "", "="); err != nil {
		return err
	}
	return b.insert(b.valueEnd(from+1), ") "+test+")")
}

// valueEnd is the offset behind a value of a condition that starts at index i.
func (b *binder) valueEnd(i int) int {
	depth := 0
	for ; i < len(b.tokens); i++ {
		switch t := b.tokens[i].Token; {
		case t == pg.Token_ASCII_40 || t == pg.Token_ASCII_91:
			depth++
		case t == pg.Token_ASCII_41 || t == pg.Token_ASCII_93:
			if depth--; depth < 0 {
				return int(b.tokens[i-1].End)
			}
		case depth == 0 && (t == pg.Token_AND || t == pg.Token_OR || endsClause(t)):
			return int(b.tokens[i-1].End)
		}
	}
	return int(b.tokens[i-1].End)
}

// assertComparable ends comparisons that PostgreSQL would make otherwise than
// by its own operators, or that could fail for a row's value.
func (b *binder) assertComparable(e *pg.A_Expr, o origin) error {
	c := o.stored()
	pattern := e.Kind == pg.A_Expr_Kind_AEXPR_LIKE || e.Kind == pg.A_Expr_Kind_AEXPR_ILIKE
	switch {
	case isCaseless(c.Type):
		return b.refuseCells(int(e.Location), "column %q is compared by operators of an extension", c.Name)
	case pattern && c.Nondeterministic:
		return b.refuseCells(int(e.Location), "column %q has a collation for which patterns are not defined", c.Name)
	case !isUnbounded(c.Type):
		return nil
	}
	// A parameter of type float8 would have the column cast to it, which fails
	// for large values.
	cast := "::pg_catalog.numeric"
	if e.Kind == pg.A_Expr_Kind_AEXPR_OP_ANY || e.Kind == pg.A_Expr_Kind_AEXPR_OP_ALL {
		cast = "::pg_catalog.numeric[]"
	}
	for _, side := range []*pg.Node{e.Lexpr, e.Rexpr} {
		elements := side.GetAArrayExpr().GetElements()
		if elements != nil {
			cast = "::pg_catalog.numeric"
		}
		for _, value := range append(append([]*pg.Node{side}, side.GetList().GetItems()...), elements...) {
			if p := value.GetParamRef(); p != nil {
				if err := b.insert(int(b.tokens[b.tokenAt(int(p.Location))].End), cast); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// stored is the column of the relation that an origin in its release stands for.
func (o origin) stored() *catalog.Column {
	at := o.at
	for i := range o.entry.relation.Columns {
		if c := &o.entry.relation.Columns[i]; c.Visible() {
			if at == 0 {
				return c
			}
			at--
		}
	}
	panic(fmt.Sprintf("column %d of %s is in no release", o.at, o.entry.relation))
}
