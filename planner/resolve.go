package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// resolved is what a column reference refers to: nothing known, or a column.
type resolved struct {
	// origin is the column itself; none for a merged column without a label.
	origin
	found bool
	// also are columns that the reference reads, or may read.
	also []origin
}

// all lists every column that the reference may read.
func (r resolved) all() []origin {
	if r.entry == nil {
		return slices.Clone(r.also)
	}
	return append([]origin{r.origin}, r.also...)
}

// resolve finds the column that a reference names. Unknown names are left to
// PostgreSQL; hidden columns of protected relations end here with 42501.
func (b *binder) resolve(s *scope, ref *pg.ColumnRef) (resolved, error) {
	names := refNames(ref)
	if len(names) == 0 {
		return resolved{}, nil
	}
	last := names[len(names)-1]
	if len(names) == 1 {
		return b.resolveBare(s, ref, last)
	}
	if e := s.named(names[:len(names)-1]); e != nil {
		return b.columnOf(e, ref, last)
	}
	return resolved{}, nil
}

// named finds the entry that a qualifier names, innermost first.
func (s *scope) named(qualifier []string) *entry {
	n := len(qualifier)
	for ; s != nil; s = s.parent {
		for _, e := range s.entries {
			if e.alias == qualifier[n-1] && (n == 1 || isIn(qualifier[n-2], e.schema, e.relation)) {
				return e
			}
		}
	}
	return nil
}

// isIn says whether a schema is that of an unaliased relation: a protected one is found by
// that of its table, and in the schema research.
func isIn(name, schema string, r *catalog.Relation) bool {
	return name == schema || schema != "" && r != nil &&
		(name == r.Schema || name == catalog.ResearchSchema)
}

// reaches says whether an entry's alias, written in this scope, means it.
func (s *scope) reaches(e *entry) bool {
	for ; s != nil; s = s.parent {
		means := false
		for _, other := range s.entries {
			if other != e && other.alias == e.alias {
				return false
			}
			means = means || other == e
		}
		if means {
			return true
		}
	}
	return false
}

func (b *binder) shadowed(ref *pg.ColumnRef, e *entry) error {
	return sqlstate.New(sqlstate.FeatureNotSupported,
		"the name %q means another table here once releases stand in place", e.alias).
		WithHint("Give each table an alias of its own.").At(b.statement, int(ref.Location))
}

// resolveBare resolves an unqualified name: the innermost scope that has it.
// Behind an entry of unknown columns a match further out is only possible, so
// that it is noted as used but has no label.
func (b *binder) resolveBare(s *scope, ref *pg.ColumnRef, name string) (resolved, error) {
	var possible resolved
	certain := true
	for at := s; at != nil; at = at.parent {
		r, err := b.inScope(at, ref, name)
		if err != nil {
			return resolved{}, err
		}
		if r.found {
			if certain && !r.guessed() {
				return r, nil
			}
			possible.also = append(possible.also, r.all()...)
			possible.found = true
			if !r.guessed() {
				return possible, nil
			}
		}
		for _, e := range at.entries {
			certain = certain && e.known
			if e.alias != name || r.found || (e.relation == nil && !hasLabels(e.columns)) {
				continue
			}
			if err := b.wholeRow(ref, e); err != nil {
				return resolved{}, err
			}
			possible.also = append(possible.also, e.all()...) // unless a column of the name is further out
			possible.found = true
		}
	}
	return possible, nil
}

// all lists the columns of an entry.
func (e *entry) all() []origin {
	out := make([]origin, len(e.columns))
	for i := range out {
		out[i] = origin{e, i}
	}
	return out
}

// guessed says whether the column may be another one.
func (r resolved) guessed() bool { return r.entry != nil && r.entry.columns[r.at].guessed }

// inScope finds an unqualified name among the entries of one scope.
func (b *binder) inScope(s *scope, ref *pg.ColumnRef, name string) (resolved, error) {
	if m := s.merge(name, 0, len(s.entries)); m != nil {
		return m.column, nil
	}
	var best resolved
	for _, e := range s.entries {
		if i := e.find(name); i >= 0 {
			o := origin{e, i}
			better := e.relation != nil && best.entry != nil && best.entry.relation == nil &&
				best.qid() == nil
			if !best.found || best.guessed() || better || (o.qid() != nil && best.qid() == nil) {
				best = resolved{origin: o, found: true}
			}
			continue
		}
		if e.relation != nil && b.hides(e, name) && !s.elsewhere(name) {
			return resolved{}, b.hidden(ref, e, name)
		}
	}
	return best, nil
}

// elsewhere says whether another entry of the scope is known to have a column.
func (s *scope) elsewhere(name string) bool {
	return slices.ContainsFunc(s.entries, func(e *entry) bool { return e.find(name) >= 0 })
}

func (b *binder) columnOf(e *entry, ref *pg.ColumnRef, name string) (resolved, error) {
	if i := e.find(name); i >= 0 {
		return resolved{origin: origin{e, i}, found: true}, nil
	}
	switch {
	case e.relation != nil && b.hides(e, name):
		return resolved{}, b.hidden(ref, e, name)
	case e.relation != nil:
		return resolved{}, sqlstate.New(sqlstate.UndefinedColumn, "column %q of table %q does not exist",
			name, e.relation.Name).
			WithHint("Its columns are %s.", strings.Join(names(e.columns), ", ")).
			At(b.statement, int(ref.Location))
	case e.query != nil && e.query.keyOf(name) != nil:
		return resolved{}, b.keyOfSubquery(ref, e.query.keyOf(name), name)
	case e.known && hasLabels(e.columns):
		// PostgreSQL would try a function of that name on the whole row.
		return resolved{}, sqlstate.New(sqlstate.UndefinedColumn, "column %q of %q does not exist", name,
			e.alias).
			WithHint("Its columns are %s.", strings.Join(names(e.columns), ", ")).
			At(b.statement, int(ref.Location))
	}
	return resolved{}, nil
}

// keyOf is the relation whose key a query would hand on by "*" if releases had one.
func (q *boundQuery) keyOf(name string) *catalog.Relation {
	at := slices.IndexFunc(q.keyed, func(r *catalog.Relation) bool { return r.Subject == name })
	if at < 0 {
		return nil
	}
	return q.keyed[at]
}

// starred are the relations whose key "*" over some entries would hand on, each once.
func starred(known []*catalog.Relation, entries []*entry) []*catalog.Relation {
	for _, e := range entries {
		of := []*catalog.Relation{e.relation}
		if e.query != nil {
			of = e.query.keyed
		}
		for _, r := range of {
			if r != nil && !slices.Contains(known, r) {
				known = append(known, r)
			}
		}
	}
	return known
}

func (b *binder) keyOfSubquery(ref *pg.ColumnRef, r *catalog.Relation, name string) error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, "permission denied for column %q of table %q",
		name, r.Name).
		WithHint("It says whom a row is about, and a subquery cannot hand it on. Join table %[1]s "+
			"itself, as in FROM a JOIN %[1]s ON a.key = %[1]s.%[2]s, and write the conditions of the "+
			"subquery beside that.", quoted(r.Name), quoted(name)).
		At(b.statement, int(ref.Location))
}
