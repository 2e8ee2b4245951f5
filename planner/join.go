package planner

import (
	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// merge is a column that a join with USING makes of one of each side.
type merge struct {
	name     string
	from, to int // the entries that the join covers
	middle   int // where its right side starts
	column   resolved
}

func (b *binder) join(j *pg.JoinExpr, sc *scope) error {
	if j.Alias != nil || j.JoinUsingAlias != nil {
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"an alias for a join is not supported beside a protected table")
	}
	from := len(sc.entries)
	if err := b.fromItem(j.Larg, sc); err != nil {
		return err
	}
	middle := len(sc.entries)
	if err := b.fromItem(j.Rarg, sc); err != nil {
		return err
	}
	for i, e := range sc.entries[from:] {
		right := from+i >= middle
		e.nullable = e.nullable || j.Jointype == pg.JoinType_JOIN_FULL ||
			j.Jointype == pg.JoinType_JOIN_LEFT && right || j.Jointype == pg.JoinType_JOIN_RIGHT && !right
	}
	names := make([]string, 0, len(j.UsingClause))
	for _, u := range j.UsingClause {
		names = append(names, u.GetString_().GetSval())
	}
	if j.IsNatural {
		var err error
		if names, err = b.natural(j, sc, from, middle); err != nil {
			return err
		}
	}
	for i, name := range names {
		if key, ok := b.keyed.using[j]; ok && key == name {
			if err := b.keyUsing(j, i); err != nil {
				return err
			}
			continue
		}
		place := -1
		if token := b.usingToken(j, i); token >= 0 {
			place = int(b.tokens[token].Start)
		}
		left, err := b.side(sc, name, from, middle, place)
		if err != nil {
			return err
		}
		right, err := b.side(sc, name, middle, len(sc.entries), place)
		if err != nil {
			return err
		}
		both := append(left.all(), right.all()...)
		b.useAll(both, ecg.Join)
		sc.merges = append(sc.merges, merge{name, from, len(sc.entries), middle, resolved{
			origin: merged(j.Jointype, left.origin, right.origin), found: true, also: both,
		}})
	}
	return b.expression(j.Quals, sc, ecg.Join)
}

// merged is the column whose label a merged column has. The value of the
// merged column is that of the side which keeps all its rows; an inner join
// has equal values on both sides; a full join takes now the one, now the
// other, and has a label for neither.
func merged(kind pg.JoinType, left, right origin) origin {
	switch kind {
	case pg.JoinType_JOIN_LEFT:
		return left
	case pg.JoinType_JOIN_RIGHT:
		return right
	case pg.JoinType_JOIN_INNER:
		if left.qid() != nil {
			return left
		}
		return right
	}
	return origin{}
}

// side finds a column of USING, which stands at an offset, among the entries of
// one side of a join.
func (b *binder) side(sc *scope, name string, from, to, place int) (resolved, error) {
	if m := sc.merge(name, from, to); m != nil {
		return m.column, nil
	}
	for _, e := range sc.entries[from:to] {
		if i := e.find(name); i >= 0 {
			o := origin{e, i}
			return resolved{origin: o, found: true}, b.payload(o, &pg.ColumnRef{Location: int32(place)})
		}
	}
	for _, e := range sc.entries[from:to] {
		if e.relation != nil && b.hides(e, name) {
			return resolved{}, b.hidden(&pg.ColumnRef{Location: int32(place)}, e, name)
		}
	}
	if e := sc.entries[from]; to == from+1 && e.relation != nil {
		// PostgreSQL's own error has no place in the text.
		return b.columnOf(e, &pg.ColumnRef{Location: int32(place)}, name)
	}
	return resolved{}, nil
}

// merge finds the widest merged column of a name within a range of entries.
func (s *scope) merge(name string, from, to int) *merge {
	var widest *merge
	for i := range s.merges {
		m := &s.merges[i]
		if m.name == name && m.from >= from && m.to <= to &&
			(widest == nil || m.to-m.from > widest.to-widest.from) {
			widest = m
		}
	}
	return widest
}
