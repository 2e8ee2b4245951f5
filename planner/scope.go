package planner

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// column is an output column of a range entry or of a query.
type column struct {
	name string
	provenance
	// qid is set while the column is a quasi-identifier as it stands: its
	// label can be shown in place of its value.
	qid *catalog.Column
	// payload is set for a column that a release shows of the payload, whatever a list of
	// names behind the alias calls it.
	payload *catalog.Column
	// bases are the quasi-identifiers that its values are computed from, of a query's column.
	bases []base
	// guessed is set where the entry may have another column instead.
	guessed bool
}

// entry is one item of a FROM list under the name by which columns refer to it.
type entry struct {
	alias    string
	schema   string // set for an unaliased relation: schema.relation.column is legal
	replaced bool   // the statement gets another text in place of the relation's name
	relation *catalog.Relation
	kept     bool              // an outer join keeps its rows beside those of a child
	nullable bool              // an outer join may add a row to it that is NULL
	via      *catalog.Relation // the child whose release shows the relation, in a join along the key
	grouped  bool              // its rows are the groups of a joint publication
	query    *boundQuery       // of a subquery
	columns  []column
	known    bool  // whether columns is complete
	mentions []int // of each column, by the target list of its query and what stands behind it
	payload  []payloadUse
}

// scope is what names can refer to at a place of a statement.
type scope struct {
	parent  *scope
	entries []*entry
	merges  []merge // by USING
	ctes    map[string]*boundQuery
}

// cte looks up a common table expression, innermost first.
func (s *scope) cte(name string) (*boundQuery, bool) {
	for ; s != nil; s = s.parent {
		if q, ok := s.ctes[name]; ok {
			return q, true
		}
	}
	return nil, false
}

// systemColumns are the columns that every table has and no release shows.
var systemColumns = []string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

// isStatistics says whether a catalog may hold samples of columns.
// pg_statistic_ext, which psql's \d reads, says which statistics there are and
// holds none.
func isStatistics(name string) bool {
	return strings.HasPrefix(name, "pg_stats") ||
		(strings.HasPrefix(name, "pg_statistic") && name != "pg_statistic_ext")
}

// relationName resolves a relation against the search path. A relation that
// the snapshot does not know keeps the name it has.
func (b *binder) relationName(rv *pg.RangeVar) (catalog.Name, error) {
	if rv.Schemaname == "" || rv.Schemaname == "pg_catalog" {
		if isStatistics(rv.Relname) {
			return catalog.Name{}, sqlstate.New(sqlstate.InsufficientPrivilege,
				"permission denied for the statistics of tables").
				WithHint("Statistics hold samples of columns; readers ask the tables themselves.").
				At(b.statement, int(rv.Location))
		}
	}
	if b.ownName(rv) {
		return catalog.Name{}, sqlstate.New(sqlstate.InsufficientPrivilege,
			"permission denied for Tailor's own relation %q", rv.Relname).
			WithHint("Name the protected table itself; its release is put in its place.").
			At(b.statement, int(rv.Location))
	}
	name := catalog.Name{Schema: rv.Schemaname, Name: rv.Relname}
	if name.Schema == "" {
		for _, schema := range b.session.SearchPath {
			if candidate := (catalog.Name{Schema: schema, Name: rv.Relname}); b.exists(candidate) {
				name = candidate
				break
			}
		}
	}
	return name, nil
}

// exists says whether a schema is known to have a relation.
func (b *binder) exists(name catalog.Name) bool {
	return b.snapshot.Protected(name) != nil || b.columnsOf(name) != nil
}

// columnsOf are the columns of a relation without a policy, nil where they are
// not known.
func (b *binder) columnsOf(name catalog.Name) []string {
	if strings.HasPrefix(name.Schema, "pg_temp") {
		return b.session.Temporary[name.Name]
	}
	if o := b.snapshot.Other(name); o != nil {
		return o.Columns
	}
	return nil
}

// ownName says whether a name lies in a schema of Tailor's own. A release read
// by its own name would be as safe as through the table's, but recorded only
// as a statement that passed.
func (b *binder) ownName(rv *pg.RangeVar) bool {
	if rv.Schemaname != "" {
		return slices.Contains(catalog.OwnSchemas, rv.Schemaname)
	}
	return strings.HasPrefix(rv.Relname, catalog.ReleasePrefix) &&
		slices.ContainsFunc(b.session.SearchPath, func(s string) bool {
			return slices.Contains(catalog.OwnSchemas, s)
		})
}

// hides says whether a protected relation has a column that is not shown.
func (b *binder) hides(e *entry, name string) bool {
	if c := e.relation.Column(name); c != nil {
		return !c.Visible() || e.via != nil &&
			(c.Class != catalog.QuasiIdentifier || e.via.IsJoint() && e.find(name) < 0)
	}
	return slices.Contains(systemColumns, name)
}

func (b *binder) hidden(ref *pg.ColumnRef, e *entry, name string) error {
	r := e.relation
	if e.via != nil && name != r.Subject && r.Column(name) != nil && r.Column(name).Visible() {
		return b.notLent(ref, e, name)
	}
	if name == r.Subject && b.wish != "" {
		return sqlstate.New(sqlstate.InsufficientPrivilege, "permission denied for column %q of table %q",
			name, r.Name).
			WithHint("What is asked of each subject's rows is in no release of a table. %s", b.wish).
			At(b.statement, int(ref.Location))
	}
	if name == r.Subject {
		hint := fmt.Sprintf("It says whom a row is about and is in no release. count(*) counts rows; "+
			"count(DISTINCT %s) is understood over all rows of the table, and where each subject has one "+
			"row, over any of a table that is read alone.", name)
		if b.snapshot.Linked(r) {
			hint += " Two tables in one FROM list are joined by an equation of their keys, each written " +
				"with its table's name. A subquery hands no key on: join the tables themselves."
		}
		if r.Parent != nil && !r.OneRow && r.SetValued == nil {
			lender := b.snapshot.Protected(catalog.Name{Schema: r.Parent.Schema, Name: r.Parent.Name})
			if lender != nil {
				hint += " " + b.dataSet(r, lender)
			}
		}
		return sqlstate.New(sqlstate.InsufficientPrivilege, "permission denied for column %q of table %q",
			name, r.Name).
			WithHint("%s", hint).At(b.statement, int(ref.Location))
	}
	reason := "The policy of the table hides it."
	if r.Column(name) == nil {
		reason = "System columns say where and when a row was stored, and are in no release."
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, "permission denied for column %q of table %q",
		name, r.Name).
		WithHint("%s Visible columns: %s.", reason, strings.Join(visibleNames(r), ", ")).
		At(b.statement, int(ref.Location))
}

// wholeRow is a row as a value. That of a subquery is the one that the client
// knows, as long as its labels are not shown besides; a release's has columns
// that the table's has not.
func (b *binder) wholeRow(ref *pg.ColumnRef, e *entry) error {
	out := sqlstate.New(sqlstate.FeatureNotSupported, "the whole row of %q cannot be used as a value",
		e.alias).At(b.statement, int(ref.Location))
	if e.query == nil && isStar(ref) {
		return out.WithHint("Name the columns: count(*) counts rows, and count(%s.column) those that an "+
			"outer join finds. The row of a subquery can be used: FROM (SELECT * FROM ...) AS %[1]s.",
			e.alias)
	}
	if e.query == nil {
		return out.WithHint("Name the columns, or use %s.*; the row of a subquery can be used: FROM "+
			"(SELECT * FROM ...) AS %[1]s.", e.alias)
	}
	if e.query.whole == nil {
		e.query.whole = out.WithHint("Its columns are shown besides. Take them from a subquery of " +
			"their own.")
	}
	return nil
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

func names(columns []column) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.name
	}
	return out
}

func (e *entry) find(name string) int {
	return slices.IndexFunc(e.columns, func(c column) bool { return c.name == name })
}

// hasLabels says whether a label can be shown for one of some columns.
func hasLabels(columns []column) bool {
	return slices.ContainsFunc(columns, func(c column) bool { return c.qid != nil })
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
