package fidelity

import (
	"errors"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Role says what an output column of a query is.
type Role int

// The roles.
const (
	Key     Role = iota // tells the rows of the answer apart
	Measure             // computed by an aggregate or a window function
)

// Output is an output column.
type Output struct {
	Name string
	Role Role
	// Count ranks columns that count the rows or people of a group: 3 for count(DISTINCT …),
	// 2 for count(*), 1 for count of a column, 0 for what counts nothing.
	Count int
}

// Statement is what the text of a query tells of its answer.
type Statement struct {
	// Outputs are nil where the text does not tell them, as with * over a table.
	Outputs []Output
	// Distinct says that the rows of the answer are told apart by its columns together: the
	// query groups its rows or asks for distinct ones.
	Distinct bool
	// Tables and Columns are the last parts of all names of relations and columns in the text.
	Tables, Columns []string
	// Qualified says that a relation is named with its schema.
	Qualified bool
}

// ErrNoQuery is the error of a statement that is no SELECT, or writes.
var ErrNoQuery = errors.New("not a query: only SELECT, WITH … SELECT and VALUES are run")

// ReadStatement parses one statement. isAggregate says which functions are aggregates, besides
// those that the syntax tells. Errors are PostgreSQL's own syntax errors, or ErrNoQuery.
func ReadStatement(sql string, isAggregate func(name string) bool) (*Statement, error) {
	tree, err := pg.Parse(sql)
	if err != nil {
		return nil, err
	}
	if len(tree.Stmts) != 1 {
		return nil, ErrNoQuery
	}
	query := tree.Stmts[0].Stmt.GetSelectStmt()
	if query == nil {
		return nil, ErrNoQuery
	}
	s := &Statement{Distinct: len(query.GroupClause) > 0 || len(query.DistinctClause) > 0}
	writes := false
	walk(query.ProtoReflect(), func(m protoreflect.Message) bool {
		switch n := m.Interface().(type) {
		case *pg.RangeVar:
			s.Tables = addName(s.Tables, n.Relname)
			s.Qualified = s.Qualified || n.Schemaname != ""
		case *pg.ColumnRef:
			s.Columns = addName(s.Columns, lastName(n.Fields))
		case *pg.IntoClause, *pg.InsertStmt, *pg.UpdateStmt, *pg.DeleteStmt, *pg.MergeStmt:
			writes = true
		}
		return true
	})
	if writes {
		return nil, ErrNoQuery
	}
	r := &outputReader{isAggregate: isAggregate}
	s.Outputs = r.query(query, nil)
	return s, nil
}

func addName(names []string, name string) []string {
	if name == "" || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// relation is a row source whose columns are known from the text, or not (nil outputs).
type relation struct {
	name    string
	outputs []Output
}

// outputReader tells the output columns of queries.
type outputReader struct {
	isAggregate func(string) bool
}

// query lists the outputs of a query, nil where they are not told. with are the names that WITH
// has given, the innermost last.
func (r *outputReader) query(s *pg.SelectStmt, with []relation) []Output {
	for _, n := range s.GetWithClause().GetCtes() {
		cte := n.GetCommonTableExpr()
		outputs := renamed(r.query(cte.GetCtequery().GetSelectStmt(), with), cte.GetAliascolnames())
		with = append(slices.Clip(with), relation{cte.GetCtename(), outputs})
	}
	switch {
	case s == nil || len(s.ValuesLists) > 0:
		return nil
	case s.Op != pg.SetOperation_SETOP_NONE:
		return merged(r.query(s.Larg, with), r.query(s.Rarg, with))
	}
	var from []relation
	for _, n := range s.FromClause {
		from = r.from(from, n, with)
	}
	var out []Output
	for _, n := range s.TargetList {
		target := n.GetResTarget()
		if fields := target.GetVal().GetColumnRef().GetFields(); len(fields) > 0 &&
			fields[len(fields)-1].GetAStar() != nil {
			stars := r.star(fields, from)
			if stars == nil {
				return nil
			}
			out = append(out, stars...)
			continue
		}
		out = append(out, r.output(target, from, with))
	}
	return out
}

// merged are the outputs of a set operation.
func merged(left, right []Output) []Output {
	if len(left) != len(right) {
		return nil
	}
	out := slices.Clone(left)
	for i := range out {
		out[i].Role = max(left[i].Role, right[i].Role)
		out[i].Count = min(left[i].Count, right[i].Count)
	}
	return out
}

func renamed(outputs []Output, names []*pg.Node) []Output {
	outputs = slices.Clone(outputs)
	for i, n := range names {
		if i < len(outputs) {
			outputs[i].Name = n.GetString_().GetSval()
		}
	}
	return outputs
}

// from adds what an item of FROM brings in.
func (r *outputReader) from(out []relation, n *pg.Node, with []relation) []relation {
	switch item := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		v := item.RangeVar
		found := relation{name: v.Relname}
		if v.Schemaname == "" {
			for _, w := range slices.Backward(with) {
				if w.name == v.Relname {
					found = w
					break
				}
			}
		}
		return append(out, aliased(found, v.Alias))
	case *pg.Node_RangeSubselect:
		outputs := r.query(item.RangeSubselect.Subquery.GetSelectStmt(), with)
		return append(out, aliased(relation{outputs: outputs}, item.RangeSubselect.Alias))
	case *pg.Node_JoinExpr:
		out = r.from(out, item.JoinExpr.Larg, with)
		out = r.from(out, item.JoinExpr.Rarg, with)
		if item.JoinExpr.IsNatural || len(item.JoinExpr.UsingClause) > 0 { // * has other columns then
			out = append(out, relation{})
		}
		return out
	}
	return append(out, relation{})
}

func aliased(r relation, alias *pg.Alias) relation {
	if alias != nil {
		r.name, r.outputs = alias.Aliasname, renamed(r.outputs, alias.Colnames)
	}
	return r
}

// star lists the columns of * or t.*, nil where they are not known.
func (r *outputReader) star(fields []*pg.Node, from []relation) []Output {
	var out []Output
	for _, f := range from {
		if len(fields) > 1 && f.name != fields[len(fields)-2].GetString_().GetSval() {
			continue
		}
		if len(f.outputs) == 0 {
			return nil
		}
		out = append(out, f.outputs...)
	}
	return out
}

// output is a column of the select list.
func (r *outputReader) output(target *pg.ResTarget, from, with []relation) Output {
	e := target.GetVal()
	out := Output{Name: target.GetName(), Role: r.role(e, from, with)}
	for e.GetTypeCast() != nil {
		e = e.GetTypeCast().Arg
	}
	switch {
	case e.GetColumnRef() != nil:
		if source := resolve(e.GetColumnRef(), from); source != nil {
			out.Count = source.Count
		}
		if out.Name == "" {
			out.Name = lastName(e.GetColumnRef().Fields)
		}
	case e.GetFuncCall() != nil:
		out.Count = countRank(e.GetFuncCall())
		if out.Name == "" {
			out.Name = lastName(e.GetFuncCall().Funcname)
		}
	}
	return out
}

// countRank ranks a call as Output.Count says.
func countRank(f *pg.FuncCall) int {
	switch {
	case lastName(f.Funcname) != "count" || f.Over != nil || f.AggFilter != nil:
		return 0
	case f.AggDistinct:
		return 3
	case f.AggStar:
		return 2
	}
	return 1
}

// role says whether an expression holds an aggregate, or a column that does.
func (r *outputReader) role(e *pg.Node, from, with []relation) Role {
	role := Key
	if e == nil {
		return role
	}
	walk(e.ProtoReflect(), func(m protoreflect.Message) bool {
		switch n := m.Interface().(type) {
		case *pg.FuncCall:
			if n.Over != nil || n.AggStar || n.AggWithinGroup || n.AggDistinct || n.AggFilter != nil ||
				r.isAggregate(lastName(n.Funcname)) {
				role = Measure
			}
		case *pg.ColumnRef:
			if source := resolve(n, from); source != nil {
				role = max(role, source.Role)
			}
		case *pg.SubLink:
			inner := r.query(n.Subselect.GetSelectStmt(), with)
			if slices.ContainsFunc(inner, func(o Output) bool { return o.Role == Measure }) {
				role = Measure
			}
			return false
		}
		return true
	})
	return role
}

// resolve finds the output that a column refers to, nil for a column of a table.
func resolve(c *pg.ColumnRef, from []relation) *Output {
	name, qualifier := lastName(c.Fields), ""
	if len(c.Fields) > 1 {
		qualifier = lastName(c.Fields[:len(c.Fields)-1])
	}
	for _, f := range from {
		if qualifier != "" && f.name != qualifier {
			continue
		}
		for i := range f.outputs {
			if f.outputs[i].Name == name {
				return &f.outputs[i]
			}
		}
	}
	return nil
}

func lastName(fields []*pg.Node) string {
	if len(fields) == 0 {
		return ""
	}
	return fields[len(fields)-1].GetString_().GetSval()
}

// walk visits a tree of messages. visit says whether to go on below a message.
func walk(m protoreflect.Message, visit func(protoreflect.Message) bool) {
	if !visit(m) {
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
		case field.IsList():
			for i := range v.List().Len() {
				walk(v.List().Get(i).Message(), visit)
			}
		default:
			walk(v.Message(), visit)
		}
		return true
	})
}
