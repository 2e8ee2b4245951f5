package planner

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
)

// Where the value of a quasi-identifier decides to which rows or groups a row belongs, an
// estimate places it, and the notice says of how many rows. That is followed through
// subqueries, common table expressions and set operations to the column of the table.

// base is a quasi-identifier that the values of a column are computed from.
type base struct {
	table, attribute string
	computed         bool // they are not its values as they stand
}

// deciding is what is known of the place of an expression that is being bound.
type deciding struct {
	exactly bool        // its values are compared for being equal, joined, grouped or told apart by
	bounds  []ecg.Bound // it is compared with these
}

// basesOf are those of a column.
func basesOf(o origin) []base {
	if o.entry.relation == nil {
		return o.entry.columns[o.at].bases
	}
	if o.qid() == nil {
		return nil
	}
	table, attribute := o.asked()
	return []base{{table: table, attribute: attribute}}
}

// asked is the relation whose release shows a quasi-identifier, and its name there.
func (o origin) asked() (table, attribute string) {
	if child := o.entry.via; child != nil {
		return child.String(), child.Parent.Lends(o.qid().Name)
	}
	return o.entry.relation.String(), o.qid().Name
}

// gather adds what a reference of an output column reads to the column's bases.
func (b *binder) gather(o origin) {
	if b.gathered == nil {
		return
	}
	*b.gathered = union(*b.gathered, basesOf(o))
}

// union shares what the one has already.
func union(one, other []base) []base {
	out := one
	for _, of := range other {
		if !slices.Contains(out, of) {
			out = append(slices.Clip(out), of)
		}
	}
	return out
}

// computed are bases of what an expression makes of them.
func computed(bases []base) []base {
	out := slices.Clone(bases)
	for i := range out {
		out[i].computed = true
	}
	return out
}

// decides notes that values decide what the answer counts: those of quasi-identifiers that
// have been noted where their relation was read.
func (p *Plan) decides(bases []base, d deciding) {
	for _, of := range bases {
		for i := range p.Uses {
			if u := &p.Uses[i]; u.Table == of.table && u.Attribute == of.attribute {
				u.Exactly = u.Exactly || d.exactly || of.computed && d.bounds != nil
				u.Bounds = withBounds(u.Bounds, d.bounds)
			}
		}
	}
}

// decidesAll does so of all columns of a query that are not shown as labels.
func (b *binder) decidesAll(q *boundQuery) {
	for _, c := range q.columns {
		if c.qid == nil {
			b.plan.decides(c.bases, deciding{exactly: true})
		}
	}
}

func withBounds(known, more []ecg.Bound) []ecg.Bound {
	for _, bound := range more {
		if !slices.Contains(known, bound) {
			known = append(known, bound)
		}
	}
	return known
}

// while binds something in a place that decides; its place in the query around it may, too.
func (b *binder) while(d deciding, do func() error) error {
	was := b.deciding
	b.deciding = deciding{exactly: was.exactly || d.exactly, bounds: d.bounds}
	err := do()
	b.deciding = was
	return err
}

// decidedBy says how an operator's operands decide: all that are compared for being equal, and
// those in ranges by where a constant cuts a column. Anything else in a range is computed.
func decidedBy(e *pg.A_Expr) deciding {
	switch e.Kind {
	case pg.A_Expr_Kind_AEXPR_OP:
		name := last(e.Name)
		if !slices.Contains([]string{"<", "<=", ">", ">="}, name) {
			return deciding{exactly: comparesExactly(e)}
		}
		column, constant, swapped := e.Lexpr, e.Rexpr, false
		if asIs(column, scaleTypes).GetColumnRef() == nil {
			column, constant, swapped = e.Rexpr, e.Lexpr, true
		}
		at, known := coordinate(constant)
		if asIs(column, scaleTypes).GetColumnRef() == nil || !known {
			return deciding{exactly: true}
		}
		after := name == "<=" || name == ">"
		if swapped {
			after = name == ">=" || name == "<"
		}
		return deciding{bounds: []ecg.Bound{{At: at, After: after}}}
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN,
		pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		ends := e.Rexpr.GetList().GetItems()
		if asIs(e.Lexpr, scaleTypes).GetColumnRef() == nil || len(ends) != 2 {
			return deciding{exactly: true}
		}
		low, known := coordinate(ends[0])
		high, both := coordinate(ends[1])
		if !known || !both {
			return deciding{exactly: true}
		}
		low, high = min(low, high), max(low, high)
		return deciding{bounds: []ecg.Bound{{At: low}, {At: high, After: true}}}
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		return deciding{exactly: true}
	}
	return deciding{exactly: comparesExactly(e)}
}

// scaleTypes are those that order numbers and days alike.
var scaleTypes = slices.Concat(numberTypes, dayTypes)

// asIs is an expression without the casts around it to some types.
func asIs(node *pg.Node, types []string) *pg.Node {
	for cast := node.GetTypeCast(); cast != nil; cast = node.GetTypeCast() {
		of := cast.TypeName
		if len(of.GetNames()) == 0 || foreign(of.Names) || !slices.Contains(types, last(of.Names)) ||
			len(of.Typmods)+len(of.ArrayBounds) > 0 {
			return node
		}
		node = cast.Arg
	}
	return node
}

// coordinate is the place of a constant on the scale of what it is compared with.
func coordinate(node *pg.Node) (float64, bool) {
	for node.GetTypeCast() != nil {
		node = node.GetTypeCast().Arg
	}
	c := node.GetAConst()
	switch {
	case c.GetIval() != nil:
		return float64(c.GetIval().Ival), true
	case c.GetFval() != nil:
		v, err := strconv.ParseFloat(c.GetFval().Fval, 64)
		return v, err == nil
	case c.GetSval() != nil:
		return ecg.Coordinate(c.GetSval().Sval)
	}
	return 0, false
}

// aggregates that say something of all values together, which no single one decides.
var summaries = []string{
	"count", "sum", "avg", "min", "max", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop",
	"var_samp", "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count",
	"regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "percentile_cont",
	"percentile_disc", "bool_and", "bool_or", "every",
}

// summarizes says whether a call is an aggregate of that kind.
func summarizes(f *pg.FuncCall) bool {
	return f.Over == nil && !f.AggDistinct && slices.Contains(summaries, last(f.Funcname))
}
