package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// column is an output column of a range entry or of a query.
type column struct {
	name string
	// qid is set while the column is a quasi-identifier as it stands: its
	// label can be shown in place of its value.
	qid *catalog.Column
	// label is the name of the column that carries the label, beside this one.
	label string
}

// entry is one item of a FROM list under the name by which columns refer to it.
type entry struct {
	alias    string
	schema   string // set for an unaliased relation: schema.relation.column is legal
	relation *catalog.Relation
	columns  []column
	known    bool // whether columns is complete
}

// scope is what names can refer to at a place of a statement.
type scope struct {
	parent  *scope
	entries []*entry
	merged  bool // a USING or NATURAL join merges columns here
	ctes    map[string][]column
}

// cte looks up a common table expression, innermost first.
func (s *scope) cte(name string) ([]column, bool) {
	for ; s != nil; s = s.parent {
		if columns, ok := s.ctes[name]; ok {
			return columns, true
		}
	}
	return nil, false
}

// systemColumns are the columns that every table has and no release shows.
var systemColumns = []string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

// statistics are the catalogs that hold samples of columns.
func isStatistics(name string) bool {
	return strings.HasPrefix(name, "pg_stats") || strings.HasPrefix(name, "pg_statistic")
}

// relationName resolves a relation against the search path. A relation that
// the snapshot does not know keeps the name it has.
func (b *binder) relationName(rv *pg.RangeVar) (catalog.Name, error) {
	if rv.Schemaname == "" || rv.Schemaname == "pg_catalog" {
		if isStatistics(rv.Relname) {
			return catalog.Name{}, sqlstate.New(sqlstate.InsufficientPrivilege, "permission denied for the statistics of tables").
				WithHint("Statistics hold samples of columns; readers ask the tables themselves.").At(b.statement, int(rv.Location))
		}
	}
	if b.ownName(rv) {
		return catalog.Name{}, sqlstate.New(sqlstate.InsufficientPrivilege, "permission denied for Tailor's own relation %q", rv.Relname).
			WithHint("Name the protected table itself; its release is put in its place.").At(b.statement, int(rv.Location))
	}
	name := catalog.Name{Schema: rv.Schemaname, Name: rv.Relname}
	if name.Schema == "" {
		for _, schema := range b.session.SearchPath {
			candidate := catalog.Name{Schema: schema, Name: rv.Relname}
			if b.snapshot.Protected(candidate) != nil || b.snapshot.Other(candidate) != nil {
				name = candidate
				break
			}
		}
	}
	if o := b.snapshot.Other(name); o != nil && o.Reaches != "" {
		return name, sqlstate.New(sqlstate.FeatureNotSupported, "view %q reads a protected table", rv.Relname).
			WithHint("Name the protected table itself.").At(b.statement, int(rv.Location))
	}
	return name, nil
}

// ownName says whether a name lies in a schema of Tailor's own. A release read
// by its own name would be as safe as through the table's, but recorded only
// as a statement that passed.
func (b *binder) ownName(rv *pg.RangeVar) bool {
	if rv.Schemaname != "" {
		return slices.Contains(catalog.OwnSchemas, rv.Schemaname)
	}
	return strings.HasPrefix(rv.Relname, catalog.ReleasePrefix) &&
		slices.ContainsFunc(b.session.SearchPath, func(s string) bool { return slices.Contains(catalog.OwnSchemas, s) })
}

// resolved is what a column reference refers to: nothing known, or a column.
type resolved struct {
	entry  *entry
	column *column
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
	qualifier := names[len(names)-2]
	for ; s != nil; s = s.parent {
		for _, e := range s.entries {
			if e.alias != qualifier || (len(names) > 2 && e.schema != names[len(names)-3]) {
				continue
			}
			return b.columnOf(e, ref, last)
		}
	}
	return resolved{}, nil
}

// resolveBare resolves an unqualified name: the innermost scope that has it.
func (b *binder) resolveBare(s *scope, ref *pg.ColumnRef, name string) (resolved, error) {
	for at := s; at != nil; at = at.parent {
		var found []resolved
		unknown := false
		for _, e := range at.entries {
			if i := e.find(name); i >= 0 {
				found = append(found, resolved{e, &e.columns[i]})
			} else if e.relation != nil && b.hides(e.relation, name) && !at.elsewhere(name) {
				return resolved{}, b.hidden(ref, e.relation, name)
			}
			unknown = unknown || !e.known
		}
		for _, f := range found {
			if f.column.qid != nil || len(found) == 1 || f.entry.relation != nil {
				return f, nil
			}
		}
		if len(found) > 0 {
			return found[0], nil
		}
		if unknown {
			return resolved{}, nil
		}
		for _, e := range at.entries {
			if e.alias == name && (e.relation != nil || hasLabels(e.columns)) {
				return resolved{}, b.wholeRow(ref, name)
			}
		}
	}
	return resolved{}, nil
}

// elsewhere says whether another entry of the scope is known to have a column.
func (s *scope) elsewhere(name string) bool {
	return slices.ContainsFunc(s.entries, func(e *entry) bool { return e.find(name) >= 0 })
}

func (b *binder) columnOf(e *entry, ref *pg.ColumnRef, name string) (resolved, error) {
	if i := e.find(name); i >= 0 {
		return resolved{e, &e.columns[i]}, nil
	}
	if e.relation != nil {
		if b.hides(e.relation, name) {
			return resolved{}, b.hidden(ref, e.relation, name)
		}
		return resolved{}, sqlstate.New(sqlstate.UndefinedColumn, "column %q of table %q does not exist", name, e.relation.Name).
			At(b.statement, int(ref.Location))
	}
	return resolved{}, nil
}

// hides says whether a relation has a column that no release shows.
func (b *binder) hides(r *catalog.Relation, name string) bool {
	if c := r.Column(name); c != nil {
		return !c.Visible()
	}
	return slices.Contains(systemColumns, name)
}

func (b *binder) hidden(ref *pg.ColumnRef, r *catalog.Relation, name string) error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, "permission denied for column %q of table %q", name, r.Name).
		WithHint("The policy of the table hides it. Visible columns: %s.", strings.Join(visibleNames(r), ", ")).
		At(b.statement, int(ref.Location))
}

func (b *binder) wholeRow(ref *pg.ColumnRef, name string) error {
	return sqlstate.New(sqlstate.FeatureNotSupported, "the whole row of %q cannot be used as a value", name).
		WithHint("Name the columns, or use %s.*.", name).At(b.statement, int(ref.Location))
}

func visibleNames(r *catalog.Relation) []string {
	var out []string
	for i := range r.Columns {
		if r.Columns[i].Visible() {
			out = append(out, r.Columns[i].Name)
		}
	}
	return out
}

func (e *entry) find(name string) int {
	return slices.IndexFunc(e.columns, func(c column) bool { return c.name == name })
}

func hasLabels(columns []column) bool {
	return slices.ContainsFunc(columns, func(c column) bool { return c.label != "" })
}

// refNames are the parts of a column reference, without a star at its end.
func refNames(ref *pg.ColumnRef) []string {
	var out []string
	for _, f := range ref.Fields {
		if s := f.GetString_(); s != nil {
			out = append(out, s.Sval)
		}
	}
	return out
}

// isStar says whether a reference ends in a star.
func isStar(ref *pg.ColumnRef) bool {
	return len(ref.Fields) > 0 && ref.Fields[len(ref.Fields)-1].GetAStar() != nil
}
