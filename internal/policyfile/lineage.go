package policyfile

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// origin is a column of a table of the file.
type origin struct {
	table  *Table
	column *Column
}

// lineage says of each column of a query which columns of the file's tables it is computed
// from, as far as their names tell. What is counted is not told.
type lineage struct{ f *File }

// longestQuery keeps a parser in C from trees that are too deep for its stack: none is
// deeper than a small multiple of the tokens.
const longestQuery = 8000

// query checks the query of a data set: that it is one SELECT, and that what it computes
// from columns that people are known by is not shown as it is.
func (r *reader) query(f *File, t *Table) {
	fault := func(line int, hint, format string, args ...any) {
		r.faults = append(r.faults, Fault{line, 1, fmt.Sprintf(format, args...), hint})
	}
	if len(t.DataSet.Query) > longestQuery {
		fault(t.Line, "make a view of it", "the query of %s is longer than %d bytes", t.Name,
			longestQuery)
		return
	}
	tree, err := pg.Parse(t.DataSet.Query)
	if err != nil {
		fault(t.Line, err.Error(), "the query of %s is no SQL", t.Name)
		return
	}
	if len(tree.Stmts) != 1 || tree.Stmts[0].Stmt.GetSelectStmt() == nil ||
		tree.Stmts[0].Stmt.GetSelectStmt().IntoClause != nil {
		fault(t.Line, "write SELECT, and what the data set is to have",
			"the query of %s is not one SELECT", t.Name)
		return
	}
	l := lineage{f}
	from := l.outputs(tree.Stmts[0].Stmt.GetSelectStmt())
	for i := range t.Columns {
		c := &t.Columns[i]
		if !c.Exact() || c.SharedFact {
			continue
		}
		for _, o := range from[c.Name] {
			if o.column.Class == "direct_identifier" ||
				o.column.Class == "quasi_identifier" && o.table.Name == t.DataSet.Of {
				fault(c.Line, "give it the class of that, hide it, or add shared_fact: accepted",
					"column %q is computed from %q of %s, and would be shown as it is", c.Name, o.column.Name,
					o.table.Name)
				break
			}
		}
	}
}

// outputs are the columns of a SELECT, by name.
func (l lineage) outputs(s *pg.SelectStmt) map[string][]origin {
	if s.Larg != nil {
		return l.outputs(s.Larg)
	}
	scope := make(map[string]map[string][]origin)
	for _, item := range s.FromClause {
		l.enter(scope, item)
	}
	out := make(map[string][]origin)
	for _, target := range s.TargetList {
		value, name := target.GetResTarget().GetVal(), target.GetResTarget().GetName()
		if ref := value.GetColumnRef(); ref != nil && name == "" {
			fields := ref.Fields
			name = fields[len(fields)-1].GetString_().GetSval()
		}
		named := func(ref *pg.ColumnRef) { out[name] = append(out[name], l.resolve(scope, ref)...) }
		references(value.ProtoReflect(), named, func(ref *pg.ColumnRef) {
			for _, o := range l.resolve(scope, ref) {
				if o.column.Name != o.table.Subject {
					out[name] = append(out[name], o)
				}
			}
		})
	}
	return out
}

// enter adds what FROM names: the columns of a table of the file, or of a subquery.
func (l lineage) enter(scope map[string]map[string][]origin, item *pg.Node) {
	switch {
	case item.GetJoinExpr() != nil:
		l.enter(scope, item.GetJoinExpr().Larg)
		l.enter(scope, item.GetJoinExpr().Rarg)
	case item.GetRangeSubselect() != nil:
		if s := item.GetRangeSubselect().GetSubquery().GetSelectStmt(); s != nil {
			scope[item.GetRangeSubselect().GetAlias().GetAliasname()] = l.outputs(s)
		}
	case item.GetRangeVar() != nil:
		v := item.GetRangeVar()
		columns := make(map[string][]origin)
		for i := range l.f.Tables {
			t := &l.f.Tables[i]
			parts := qualified.FindStringSubmatch(t.Name)
			if parts == nil || unquoted(parts[2]) != v.Relname ||
				v.Schemaname != "" && unquoted(parts[1]) != v.Schemaname {
				continue
			}
			for j := range t.Columns {
				columns[t.Columns[j].Name] = append(columns[t.Columns[j].Name], origin{t, &t.Columns[j]})
			}
		}
		name := v.Relname
		if v.Alias != nil {
			name = v.Alias.Aliasname
		}
		scope[name] = columns
	}
}

// resolve finds what a column may be, in any table where none is named.
func (l lineage) resolve(scope map[string]map[string][]origin, ref *pg.ColumnRef) []origin {
	name := ref.Fields[len(ref.Fields)-1].GetString_().GetSval()
	if len(ref.Fields) > 1 {
		return scope[ref.Fields[len(ref.Fields)-2].GetString_().GetSval()][name]
	}
	var out []origin
	for _, columns := range scope {
		out = append(out, columns[name]...)
	}
	return out
}

// references visits the columns that an expression names, but for those that it counts.
// What a subquery depends on by a condition is visited by another function: it may be the
// key, which says whose rows are meant.
func references(m protoreflect.Message, visit, condition func(*pg.ColumnRef)) {
	if !m.IsValid() {
		return
	}
	switch n := m.Interface().(type) {
	case *pg.ColumnRef:
		visit(n)
		return
	case *pg.FuncCall:
		if slices.ContainsFunc(n.Funcname, func(part *pg.Node) bool {
			return part.GetString_().GetSval() == "count"
		}) {
			return
		}
	case *pg.SubLink:
		s := n.Subselect.GetSelectStmt()
		references(n.Testexpr.ProtoReflect(), condition, condition)
		for _, target := range s.GetTargetList() {
			if n.SubLinkType != pg.SubLinkType_EXISTS_SUBLINK {
				references(target.ProtoReflect(), visit, condition)
			}
		}
		for _, node := range append(slices.Clone(s.GetFromClause()), s.GetWhereClause(),
			s.GetHavingClause()) {
			references(node.ProtoReflect(), condition, condition)
		}
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
		case field.IsList():
			for i := range value.List().Len() {
				references(value.List().Get(i).Message(), visit, condition)
			}
		default:
			references(value.Message(), visit, condition)
		}
		return true
	})
}
