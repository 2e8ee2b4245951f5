package planner

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// expression binds everything below a node. The cases are the list of what is
// understood beside protected data; anything else is refused.
func (b *binder) expression(node *pg.Node, sc *scope, place ecg.Place) error {
	if node == nil || node.Node == nil {
		return nil
	}
	switch n := node.Node.(type) {
	case *pg.Node_ColumnRef:
		return b.reference(n.ColumnRef, sc, place)
	case *pg.Node_AConst, *pg.Node_ParamRef, *pg.Node_SqlvalueFunction, *pg.Node_SetToDefault,
		*pg.Node_String_, *pg.Node_Integer:
		return nil
	case *pg.Node_SubLink:
		return b.subLink(n.SubLink, sc, place)
	case *pg.Node_FuncCall:
		return b.function(n.FuncCall, sc, place)
	case *pg.Node_List:
		return b.all(sc, place, n.List.Items...)
	case *pg.Node_AExpr:
		if err := b.ownOperator(n.AExpr.Name, int(n.AExpr.Location)); err != nil {
			return err
		}
		return b.while(decidedBy(n.AExpr), func() error {
			return b.all(sc, place, n.AExpr.Lexpr, n.AExpr.Rexpr)
		})
	case *pg.Node_BoolExpr:
		return b.all(sc, place, n.BoolExpr.Args...)
	case *pg.Node_TypeCast:
		if err := b.ownType(n.TypeCast.TypeName); err != nil {
			return err
		}
		return b.all(sc, place, n.TypeCast.Arg)
	case *pg.Node_CaseExpr:
		if err := b.all(sc, place, n.CaseExpr.Arg, n.CaseExpr.Defresult); err != nil {
			return err
		}
		return b.all(sc, place, n.CaseExpr.Args...)
	case *pg.Node_CaseWhen:
		return b.all(sc, place, n.CaseWhen.Expr, n.CaseWhen.Result)
	case *pg.Node_CoalesceExpr:
		return b.all(sc, place, n.CoalesceExpr.Args...)
	case *pg.Node_MinMaxExpr:
		return b.all(sc, place, n.MinMaxExpr.Args...)
	case *pg.Node_NullTest:
		if t := keptChild(n.NullTest.Arg.GetColumnRef(), sc); t != nil {
			return b.keyReference(n.NullTest.Arg.GetColumnRef(), t)
		}
		return b.all(sc, place, n.NullTest.Arg)
	case *pg.Node_BooleanTest:
		return b.all(sc, place, n.BooleanTest.Arg)
	case *pg.Node_AArrayExpr:
		return b.all(sc, place, n.AArrayExpr.Elements...)
	case *pg.Node_RowExpr:
		return b.all(sc, place, n.RowExpr.Args...)
	case *pg.Node_AIndirection:
		if err := b.all(sc, place, n.AIndirection.Arg); err != nil {
			return err
		}
		return b.all(sc, place, n.AIndirection.Indirection...)
	case *pg.Node_AIndices:
		return b.all(sc, place, n.AIndices.Lidx, n.AIndices.Uidx)
	case *pg.Node_CollateClause:
		return b.all(sc, place, n.CollateClause.Arg)
	case *pg.Node_SortBy:
		if err := b.ownOperator(n.SortBy.UseOp, int(n.SortBy.Location)); err != nil {
			return err
		}
		return b.all(sc, place, n.SortBy.Node)
	case *pg.Node_WindowDef:
		return b.window(n.WindowDef, sc, place)
	case *pg.Node_GroupingSet:
		return b.all(sc, place, n.GroupingSet.Content...)
	case *pg.Node_GroupingFunc:
		return b.all(sc, place, n.GroupingFunc.Args...)
	case *pg.Node_NamedArgExpr:
		return b.all(sc, place, n.NamedArgExpr.Arg)
	case *pg.Node_ResTarget:
		return b.all(sc, place, n.ResTarget.Val)
	}
	return b.unsupported(node)
}

// comparesExactly says whether an expression compares values for being equal.
func comparesExactly(e *pg.A_Expr) bool {
	switch e.Kind {
	case pg.A_Expr_Kind_AEXPR_OP, pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL,
		pg.A_Expr_Kind_AEXPR_IN,
		pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT, pg.A_Expr_Kind_AEXPR_NULLIF:
		name := last(e.Name)
		return name == "=" || name == "<>" || name == "!="
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
		return true
	}
	return false
}

func (b *binder) all(sc *scope, place ecg.Place, nodes ...*pg.Node) error {
	for _, n := range nodes {
		if err := b.expression(n, sc, place); err != nil {
			return err
		}
	}
	return nil
}

func (b *binder) window(w *pg.WindowDef, sc *scope, place ecg.Place) error {
	if w == nil {
		return nil
	}
	err := b.while(deciding{exactly: true}, func() error {
		return b.all(sc, place, w.PartitionClause...)
	})
	if err != nil {
		return err
	}
	if err := b.all(sc, place, w.OrderClause...); err != nil {
		return err
	}
	return b.all(sc, place, w.StartOffset, w.EndOffset)
}

func (b *binder) function(f *pg.FuncCall, sc *scope, place ecg.Place) error {
	if b.isLabelCall(f) {
		return b.labelCall(f, sc, place)
	}
	if err := b.assertAllowedFunction(f); err != nil {
		return err
	}
	if b.isCaseCount(f) {
		return b.caseCount(f, sc, place)
	}
	return b.call(f, sc, place)
}

// call binds a function call that is permitted.
func (b *binder) call(f *pg.FuncCall, sc *scope, place ecg.Place) error {
	if b.countsSubjects(f, sc) {
		// The release has no key, and a row for each subject.
		open := b.opening(f)
		if err := b.replace(int(b.tokens[open].End), int(b.tokens[b.closing(open)].Start),
			"*"); err != nil {
			return err
		}
		return b.all(sc, place, f.AggFilter)
	}
	if t := keptChild(countedColumn(f), sc); t != nil { // rows that an outer join has found
		if err := b.keyReference(countedColumn(f), t); err != nil {
			return err
		}
		return b.all(sc, place, f.AggFilter)
	}
	averaged, around, gathered := b.averaged, b.deciding, b.gathered
	b.averaged = averagedColumn(f)
	if summarizes(f) {
		b.deciding, b.gathered = deciding{}, nil
	}
	b.exactly = b.exactly || f.AggDistinct
	err := b.all(sc, place, f.Args...)
	b.averaged, b.deciding, b.gathered = averaged, around, gathered
	if err != nil {
		return err
	}
	if err := b.all(sc, place, f.AggOrder...); err != nil {
		return err
	}
	if err := b.all(sc, place, f.AggFilter); err != nil {
		return err
	}
	return b.window(f.Over, sc, place)
}

// countedColumn is the column of a plain count(column), nil for any other call.
func countedColumn(f *pg.FuncCall) *pg.ColumnRef {
	if last(f.Funcname) != "count" || len(f.Args) != 1 || f.AggDistinct || f.Over != nil ||
		len(f.AggOrder) > 0 {
		return nil
	}
	return f.Args[0].GetColumnRef()
}

// countsSubjects says whether a call is count(DISTINCT key) over a protected
// table that is read alone and has one row for each subject.
func (b *binder) countsSubjects(f *pg.FuncCall, sc *scope) bool {
	if !isSubjectCount(f) || len(sc.entries) != 1 {
		return false
	}
	ref := f.Args[0].GetColumnRef()
	names, e := refNames(ref), sc.entries[0]
	return e.relation != nil && e.relation.OneRow && len(names) <= 2 &&
		names[len(names)-1] == e.relation.Subject &&
		e.find(e.relation.Subject) < 0 && (len(names) == 1 || names[0] == e.alias)
}

// subLink binds a subquery inside an expression. It outputs values: labels are
// for what reaches the client.
func (b *binder) subLink(s *pg.SubLink, sc *scope, place ecg.Place) error {
	if err := b.ownOperator(s.OperName, int(s.Location)); err != nil {
		return err
	}
	b.wish = ""
	if done, err := b.derived(s, sc); done || err != nil {
		return err
	}
	if err := b.semiJoin(s, sc); err != nil {
		return err
	}
	among := s.Testexpr != nil // IN, or another comparison with all rows
	err := b.while(deciding{exactly: among}, func() error {
		return b.expression(s.Testexpr, sc, place)
	})
	if err != nil {
		return err
	}
	query := s.Subselect.GetSelectStmt()
	if query == nil {
		return b.unsupported(s.Subselect)
	}
	bound, err := b.selectStmt(query, sc, false)
	if err != nil || s.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK {
		return err
	}
	for _, c := range bound.columns {
		b.plan.decides(c.bases, deciding{exactly: among || b.exactly || b.bounds != nil})
		if b.gathered != nil {
			*b.gathered = union(*b.gathered, c.bases)
		}
	}
	return nil
}

// reference binds a column reference and notes a quasi-identifier's use.
func (b *binder) reference(ref *pg.ColumnRef, sc *scope, place ecg.Place) error {
	if isStar(ref) {
		return b.starValue(ref, sc)
	}
	if t := b.keyed.keys[ref]; t != nil {
		return b.keyReference(ref, t)
	}
	r, err := b.resolve(sc, ref)
	if err != nil {
		return err
	}
	b.at = int(ref.Location)
	b.useAll(r.all(), place)
	b.at = -1
	for _, o := range r.all() {
		o.entry.mention(o.at)
		if err := b.payload(o, ref); err != nil {
			return err
		}
	}
	names := refNames(ref)
	if len(names) <= 2 || r.entry == nil || !r.entry.replaced {
		return nil
	}
	// schema.relation.column: the release lies in another schema and is
	// known by the relation's name alone.
	if !sc.reaches(r.entry) {
		return b.shadowed(ref, r.entry)
	}
	if len(names) > 3 && names[0] != b.session.Database {
		return b.otherDatabase(int(ref.Location))
	}
	first := b.tokenAt(int(ref.Location))
	return b.replace(int(ref.Location), int(b.tokens[first+2*(len(names)-2)].Start), "")
}

// starValue refuses t.* as a value, such as in ROW(t.*) or count(t.*): the
// release has columns that the relation has not.
func (b *binder) starValue(ref *pg.ColumnRef, sc *scope) error {
	names := refNames(ref)
	for at := sc; at != nil; at = at.parent {
		for _, e := range at.entries {
			if (e.relation != nil || hasLabels(e.columns)) &&
				(len(names) == 0 || e.alias == names[len(names)-1]) {
				if err := b.wholeRow(ref, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// unsupported is the refusal of everything outside the lists above.
func (b *binder) unsupported(node *pg.Node) error {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", node.GetNode()), "*pg_query.Node_")
	out := sqlstate.New(sqlstate.FeatureNotSupported,
		"the construct %s is not supported beside a protected table", kind).
		At(b.statement, start(node))
	switch {
	case strings.HasPrefix(kind, "Json"):
		return out.WithHint("Functions that are called like others do the same: json_build_object, " +
			"json_agg, jsonb_path_query.")
	case strings.HasPrefix(kind, "Xml"):
		return out.WithHint("XML is not understood. format(), json_build_object and string_agg make " +
			"texts of columns.")
	}
	return out.WithHint("Leave it to the client, or to a query over a temporary table that holds " +
		"the answer.")
}
