package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// The release of a relation that answers with aggregates only (rows: false) is safe to be
// read in full: numbers stand as averages of cells, other payload in another order of the
// block's rows (docs/decisions/aggregates-only.md). What is refused here is refused
// because the answer would be wrong, and tells nothing that it should not.

// payloadUse is that a query names a column of such a relation's payload.
type payloadUse struct {
	at     int  // the column, in its entry
	summed bool // it stands directly inside an aggregate that averages answer
}

// averagedAggregates answer of averages what they would answer of the values.
var averagedAggregates = []string{"count", "sum", "avg"}

// averagedColumn is the column that such an aggregate is computed of, nil for none.
func averagedColumn(f *pg.FuncCall) *pg.ColumnRef {
	plain := len(f.Args) == 1 && !f.AggDistinct && !f.AggWithinGroup && len(f.AggOrder) == 0
	if !plain || !slices.Contains(averagedAggregates, last(f.Funcname)) {
		return nil
	}
	return f.Args[0].GetColumnRef()
}

// payload refuses what cannot be answered of a column of a relation that answers with
// aggregates only.
func (b *binder) payload(o origin, ref *pg.ColumnRef) error {
	r := o.entry.relation
	if r == nil || !r.AggregateOnly || o.qid() != nil {
		return nil
	}
	c := o.entry.columns[o.at].payload
	if c == nil {
		return nil
	}
	use := payloadUse{at: o.at, summed: b.averaged == ref}
	if c.IsAveraged() && !use.summed {
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"column %q of table %q stands in averages of at least %d subjects", c.Name, r.Name, r.K).
			WithHint("Ask for count(%[1]s), sum(%[1]s) or avg(%[1]s), of groups by quasi-identifiers, "+
				"with any FILTER and WHERE over them. Conditions on it, extremes, medians and "+
				"deviations would be those of averages.", quoted(c.Name)).
			At(b.statement, int(ref.Location))
	}
	for _, other := range o.entry.payload {
		if other.at != use.at && !(other.summed && use.summed) {
			return b.refuseLinked(r, c, o.entry.columns[other.at].name, int(ref.Location))
		}
	}
	o.entry.payload = append(o.entry.payload, use)
	return nil
}

// refuseLinked says that a release does not tell which values of two columns are of one
// subject.
func (b *binder) refuseLinked(r *catalog.Relation, c *catalog.Column, other string, at int) error {
	return sqlstate.New(sqlstate.FeatureNotSupported,
		"columns %q and %q of table %q, which answers with aggregates only, are not linked",
		other, c.Name, r.Name).
		WithHint("Use one of them at a time, beside quasi-identifiers. A database administrator "+
			"makes a quasi-identifier of a column by which others are to be grouped.").
		At(b.statement, at)
}
