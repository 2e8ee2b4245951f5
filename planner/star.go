package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// boundStar is a "*" or "t.*" in a target list. It is expanded at the end,
// when it is known which subqueries carry labels, which are not for showing.
type boundStar struct {
	start, end int
	entries    []*entry
}

// star binds "*" or "t.*" and notes the columns that it covers.
func (b *binder) star(ref *pg.ColumnRef, sc *scope, bound *boundQuery) error {
	names := refNames(ref)
	if ref.Location < 0 {
		return sqlstate.New(sqlstate.FeatureNotSupported, "the command TABLE is not supported for a protected table").
			WithHint("Write SELECT * FROM instead.")
	}
	if len(names) == 0 && len(sc.merges) > 0 {
		return sqlstate.New(sqlstate.FeatureNotSupported, "\"*\" over USING or NATURAL cannot be expanded").
			WithHint("Name the columns, or use t.* for each table.").At(b.statement, int(ref.Location))
	}
	entries := sc.entries
	if len(names) > 0 {
		e := sc.named(names)
		if e == nil {
			bound.known = false
			return nil
		}
		if !sc.reaches(e) {
			return b.shadowed(ref, e)
		}
		entries = []*entry{e}
	}
	for _, e := range entries {
		for i, c := range e.columns {
			o := origin{e, i}
			if c.qid != nil {
				b.use(o, ecg.Projection)
			}
			if c.qid == nil || !bound.known {
				o = origin{}
			}
			bound.add(column{name: c.name, qid: o.qid()}, o)
		}
		bound.known = bound.known && e.known
		if len(bound.columns) > maxColumns {
			return b.tooManyColumns(len(bound.columns))
		}
	}
	end := b.tokenAt(int(ref.Location)) + 2*len(names)
	b.stars = append(b.stars, &boundStar{int(ref.Location), int(b.tokens[end].End), entries})
	return nil
}

// expandStars edits each star that covers a column which is not for showing.
func (b *binder) expandStars() error {
	for _, s := range b.stars {
		if !slices.ContainsFunc(s.entries, (*entry).carriesLabels) {
			continue
		}
		var list []string
		for _, e := range s.entries {
			if !e.carriesLabels() {
				list = append(list, quoted(e.alias)+".*")
				continue
			}
			if !e.known {
				return unknownStar().At(b.statement, s.start)
			}
			seen := make(map[string]bool, len(e.columns))
			for _, c := range e.columns {
				if seen[c.name] {
					return sqlstate.New(sqlstate.FeatureNotSupported, "\"*\" over two columns of the same name cannot be expanded").
						WithHint("Give each column of the subquery a name of its own.").At(b.statement, s.start)
				}
				seen[c.name] = true
				list = append(list, quoted(e.alias)+"."+quoted(c.name))
			}
		}
		if err := b.replace(s.start, s.end, strings.Join(list, ", ")); err != nil {
			return err
		}
	}
	return nil
}

// carriesLabels says whether an entry has columns besides those that its
// names stand for.
func (e *entry) carriesLabels() bool {
	return e.relation != nil || (e.query != nil && e.query.carried != nil)
}
