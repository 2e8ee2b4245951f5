package planner

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Functions that say how certain a condition on quasi-identifiers is, by the labels of
// rows. The label of a row covers the value that its person has, and NULL is covered by
// the label "*" alone.
var certaintyFunctions = []string{
	"certain",      // whether the condition is true whatever the labels stand for
	"possible",     // whether it is true of something that the labels cover
	"count_bounds", // an array of how many rows are certain and how many possible
}

// judged is a condition in two forms, over the labels of a release. Each is true, or
// false or NULL.
//
// Guarantee: where certain is true, the condition is true of the table's own row; where
// possible is not, it is not. Precondition: the column has the values of its label, as
// releases do. Each comparison is judged by itself, and AND and OR of what is uncertain
// are uncertain: what follows from several comparisons together is not seen, but that of
// AND over ranges of one column. TestBoundsOfCountsHoldAndAreTight checks both.
type judged struct{ certain, possible []edit }

// both is a judgement of what a row shows as it is.
func both(text string) judged { return judged{words(text), words(text)} }

func words(text string) []edit { return []edit{{text: text}} }

// joined puts judgements between parentheses, with a word between.
func joined(word string, list ...judged) judged {
	var out judged
	for i, j := range list {
		before := word
		if i == 0 {
			before = "("
		}
		out.certain = append(append(out.certain, edit{text: before}), j.certain...)
		out.possible = append(append(out.possible, edit{text: before}), j.possible...)
	}
	out.certain = append(out.certain, edit{text: ")"})
	out.possible = append(out.possible, edit{text: ")"})
	return out
}

// certaintyCall binds a call of one of them.
func (b *binder) certaintyCall(f *pg.FuncCall, sc *scope, place ecg.Place) error {
	name := last(f.Funcname)
	modified := f.AggDistinct || f.AggFilter != nil || f.Over != nil || f.AggOrder != nil ||
		f.FuncVariadic
	if len(f.Args) != 1 || modified {
		return b.uncertain(f, int(f.Location))
	}
	j := judge{binder: b, call: f, scope: sc, place: place}
	judged, err := j.condition(f.Args[0], false)
	if err != nil {
		return err
	}
	var parts []edit
	switch name {
	case "certain":
		parts = slices.Concat(words("COALESCE("), judged.certain, words(", false)"))
	case "possible":
		parts = slices.Concat(words("COALESCE("), judged.possible, words(", false)"))
	default:
		parts = slices.Concat(words("ARRAY[pg_catalog.count(*) FILTER (WHERE "), judged.certain,
			words("), pg_catalog.count(*) FILTER (WHERE "), judged.possible, words(")]"))
	}
	return b.replaceCall(f, parts)
}

// uncertain is the refusal of a condition that cannot be judged.
func (b *binder) uncertain(f *pg.FuncCall, at int) error {
	name := last(f.Funcname)
	return sqlstate.New(sqlstate.FeatureNotSupported, "tailor.%s cannot judge this condition", name).
		WithHint("It takes comparisons of quasi-identifiers of one protected table with constants by "+
			"=, <>, <, <=, >, >=, BETWEEN, IN, IS NULL, LIKE 'prefix%%', or of date_trunc(unit, day), "+
			"extract(year FROM day) and left(code, n) by =, and conditions on its other columns, with AND, "+
			"OR and NOT; texts and codes by =, <>, IN and IS NULL, those of code lists with literals.").
		At(b.statement, at)
}

// judge judges one call's condition.
type judge struct {
	*binder
	call  *pg.FuncCall
	scope *scope
	place ecg.Place
}

func (j judge) refuse(node *pg.Node) (judged, error) {
	at := start(node)
	if at < 0 {
		at = int(j.call.Location)
	}
	return judged{}, j.uncertain(j.call, at)
}

// condition judges a condition, or the opposite of it: NOT goes down to comparisons, which
// are NULL of NULL either way.
func (j judge) condition(node *pg.Node, not bool) (judged, error) {
	if e := node.GetBoolExpr(); e != nil {
		if e.Boolop == pg.BoolExprType_NOT_EXPR {
			return j.condition(e.Args[0], !not)
		}
		word := " AND "
		if (e.Boolop == pg.BoolExprType_OR_EXPR) != not {
			word = " OR "
		}
		var list []judged
		for _, arg := range e.Args {
			one, err := j.condition(arg, not)
			if err != nil {
				return judged{}, err
			}
			list = append(list, one)
		}
		return joined(word, list...), nil
	}
	if !j.generalized(node) {
		return j.shown(node, not)
	}
	switch {
	case node.GetNullTest() != nil:
		o, err := j.column(node.GetNullTest().Arg)
		if err != nil {
			return judged{}, err
		}
		return o.isNull((node.GetNullTest().Nulltesttype == pg.NullTestType_IS_NULL) != not), nil
	case node.GetColumnRef() != nil:
		o, err := j.column(node)
		if err != nil || o.IsMeasured() {
			return j.refuseOr(node, err)
		}
		return o.equals("true", "true", not), nil
	case node.GetAExpr() != nil:
		if period, err := j.period(node.GetAExpr()); period != nil || err != nil {
			if err != nil {
				return judged{}, err
			}
			return j.condition(period, not)
		}
		return j.comparison(node, not)
	}
	return j.refuse(node)
}

func (j judge) refuseOr(node *pg.Node, err error) (judged, error) {
	if err != nil {
		return judged{}, err
	}
	return j.refuse(node)
}

// generalized says whether a node has a quasi-identifier in it, or a column that cannot
// be found.
func (j judge) generalized(node *pg.Node) (found bool) {
	visit(node, func(ref *pg.ColumnRef) {
		if isStar(ref) {
			return
		}
		r, err := j.resolve(j.scope, ref)
		generalized := func(o origin) bool { return o.qid() != nil }
		found = found || err != nil || slices.ContainsFunc(r.all(), generalized)
	})
	return found
}

// shown is the judgement of a condition on what a release shows as it is. A column of
// anything else, a subquery or a function, may be made of quasi-identifiers.
func (j judge) shown(node *pg.Node, not bool) (judged, error) {
	edits := len(j.edits)
	if err := j.expression(node, j.scope, j.place); err != nil {
		return judged{}, err
	}
	plain := true
	visit(node, func(ref *pg.ColumnRef) {
		r, err := j.resolve(j.scope, ref)
		plain = plain && err == nil && r.entry != nil && r.entry.relation != nil &&
			r.entry.columns[r.at].payload != nil && !r.entry.relation.AggregateOnly
		if plain { // and withheld from nobody
			root := j.snapshot.Rooted(r.entry.relation)
			plain = root != nil && !root.BlindCuts
		}
	})
	text, ok := deparsed(node)
	if !plain || len(j.edits) != edits || !ok {
		return j.refuse(node)
	}
	if not {
		text = "NOT " + text
	}
	return both(text), nil
}

// column is the quasi-identifier that a node is.
func (j judge) column(node *pg.Node) (labelled, error) {
	ref := node.GetColumnRef()
	if ref == nil || isStar(ref) {
		_, err := j.refuse(node)
		return labelled{}, err
	}
	r, err := j.resolve(j.scope, ref)
	if err != nil {
		return labelled{}, err
	}
	o := r.origin
	if o.qid() == nil || o.entry.relation == nil || o.entry.via != nil && !o.entry.grouped ||
		!j.scope.reaches(o.entry) || !o.entry.relation.Numbers(o.qid()) {
		_, err := j.refuse(node)
		return labelled{}, err
	}
	j.at = int(ref.Location)
	j.use(o, j.place)
	j.at = -1
	o.entry.mention(o.at)
	return labelled{o, o.qid(), j.codeList(o.qid().Hierarchy)}, nil
}

// constant is the text of an expression without columns.
func (j judge) constant(node *pg.Node) (string, error) {
	plain := true
	visit(node, func(n *pg.Node) {
		switch n.Node.(type) {
		case *pg.Node_AConst, *pg.Node_ParamRef, *pg.Node_TypeCast, *pg.Node_AExpr,
			*pg.Node_SqlvalueFunction, *pg.Node_String_, *pg.Node_Integer:
		default:
			plain = false
		}
	})
	text, ok := deparsed(node)
	if !plain || !ok {
		_, err := j.refuse(node)
		return "", err
	}
	return text, j.expression(node, j.scope, j.place)
}

// comparison judges the comparison of a quasi-identifier with constants.
func (j judge) comparison(node *pg.Node, not bool) (judged, error) {
	e := node.GetAExpr()
	left, right, operator := e.Lexpr, e.Rexpr, last(e.Name)
	if len(e.Name) != 1 {
		return j.refuse(node)
	}
	if left.GetColumnRef() == nil {
		left, right = right, left
		operator = mirrored[operator]
		if e.Kind != pg.A_Expr_Kind_AEXPR_OP {
			return j.refuse(node)
		}
	}
	o, err := j.column(left)
	if err != nil {
		return judged{}, err
	}
	switch e.Kind {
	case pg.A_Expr_Kind_AEXPR_OP:
		if not {
			operator = opposite[operator]
		}
		return j.compare(o, operator, right, node)
	case pg.A_Expr_Kind_AEXPR_IN:
		equal, word := (operator == "=") != not, " OR "
		operator = "="
		if !equal {
			operator, word = "<>", " AND "
		}
		var list []judged
		for _, item := range right.GetList().GetItems() {
			one, err := j.compare(o, operator, item, node)
			if err != nil {
				return judged{}, err
			}
			list = append(list, one)
		}
		return joined(word, list...), nil
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN:
		outside := e.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN
		return j.between(o, right.GetList().GetItems(), outside != not, node)
	case pg.A_Expr_Kind_AEXPR_LIKE:
		pattern := right.GetAConst().GetSval().GetSval()
		prefix, only := strings.CutSuffix(pattern, "%")
		if !o.isPrefix() || !only || strings.ContainsAny(prefix, `%_\`) {
			return j.refuse(node)
		}
		return o.begins(literal(prefix), (operator == "!~~") != not), nil
	}
	return j.refuse(node)
}

// mirrored are the operators with their sides exchanged, opposite those that are true
// where they are false.
var (
	mirrored = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
	opposite = map[string]string{"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
)

// between judges BETWEEN. What may lie in a range whose ends are exchanged is nothing.
func (j judge) between(o labelled, ends []*pg.Node, not bool, node *pg.Node) (judged, error) {
	above, below, word := ">=", "<=", " AND "
	if not {
		above, below, word = "<", ">", " OR "
	}
	if len(ends) != 2 {
		return j.refuse(node)
	}
	first, err := j.compare(o, above, ends[0], node)
	if err != nil {
		return judged{}, err
	}
	second, err := j.compare(o, below, ends[1], node)
	if err != nil || not {
		return joined(word, first, second), err
	}
	inOrder, err := j.inOrder(o, ends)
	return joined(word, first, second, both(inOrder)), err
}

// inOrder says that the ends of BETWEEN are not exchanged.
func (j judge) inOrder(o labelled, ends []*pg.Node) (string, error) {
	var texts []string
	for _, end := range ends {
		text, err := j.constant(end)
		if err != nil {
			return "", err
		}
		if end.GetAConst().GetSval() != nil {
			text += "::" + o.ReleaseType()
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " <= "), nil
}

// compare judges a comparison by an operator.
func (j judge) compare(o labelled, operator string, with, node *pg.Node) (judged, error) {
	text, err := j.constant(with)
	if err != nil {
		return judged{}, err
	}
	switch {
	case opposite[operator] == "":
	case o.IsMeasured():
		return o.measured(operator, text), nil
	case operator != "=" && operator != "<>":
	case o.isPrefix():
		return o.equals(text, "", operator == "<>"), nil
	default:
		if value, ok := literalOf(with); ok {
			return o.equals(text, value, operator == "<>"), nil
		}
	}
	return j.refuse(node)
}

// faithful are types to which a cast leaves a literal as it is written.
var faithful = []string{"text", "varchar", "bool", "int2", "int4", "int8"}

// literalOf is the text of a literal, which casts must leave as it is.
func literalOf(node *pg.Node) (string, bool) {
	if cast := node.GetTypeCast(); cast != nil {
		names := cast.TypeName.GetNames()
		text, ok := literalOf(cast.Arg)
		return text, ok && len(names) > 0 && len(cast.TypeName.GetTypmods()) == 0 &&
			slices.Contains(faithful, last(names))
	}
	c := node.GetAConst()
	switch v := c.GetVal().(type) {
	case *pg.A_Const_Sval:
		return v.Sval.GetSval(), true
	case *pg.A_Const_Ival:
		return strconv.Itoa(int(v.Ival.GetIval())), true
	case *pg.A_Const_Boolval:
		return strconv.FormatBool(v.Boolval.GetBoolval()), true
	}
	return "", false
}

// deparsed is the text of an expression, between parentheses.
func deparsed(node *pg.Node) (string, bool) {
	target := &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: node}}}
	text, err := pg.Deparse(&pg.ParseResult{Stmts: []*pg.RawStmt{{Stmt: &pg.Node{
		Node: &pg.Node_SelectStmt{SelectStmt: &pg.SelectStmt{TargetList: []*pg.Node{target}}},
	}}}})
	text, ok := strings.CutPrefix(text, "SELECT ")
	return "(" + text + ")", ok && err == nil
}
