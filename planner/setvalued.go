package planner

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// tailor.case_count('schema.table', codes) answers from the publication of a
// set-valued table. The literal that names the table is replaced by one that
// names its release, so that the statement is planned, admitted and recorded
// like any other that reads the table.
const caseCountName = "case_count"

// caseCountColumns are the columns of tailor.case_count in FROM.
var caseCountColumns = []string{"expected", "lower", "upper"}

// isCaseCount says whether a call means Tailor's own function.
func (b *binder) isCaseCount(f *pg.FuncCall) bool {
	names := f.GetFuncname()
	if last(names) != caseCountName {
		return false
	}
	if len(names) == 1 {
		return slices.Contains(b.session.SearchPath, "tailor")
	}
	return names[len(names)-2].GetString_().GetSval() == "tailor"
}

// countedRelation is the set-valued relation that a call of tailor.case_count
// names, and the literal that names it.
func (b *binder) countedRelation(f *pg.FuncCall) (*catalog.Relation, *pg.A_Const, error) {
	literal := relationArgument(f)
	if literal == nil {
		return nil, nil, sqlstate.New(sqlstate.FeatureNotSupported,
			"tailor.case_count needs the name of its table as a literal").
			WithHint("For example, tailor.case_count('public.diagnoses', ARRAY['250.00', '401.9']); the "+
				"codes can be parameters.").
			At(b.statement, int(f.Location))
	}
	schema, relation, ok := qualifiedName(literal.GetSval().GetSval())
	var r *catalog.Relation
	if ok {
		name, err := b.relationName(&pg.RangeVar{
			Schemaname: schema, Relname: relation,
			Location: literal.Location,
		})
		if err != nil {
			return nil, nil, err
		}
		r = b.snapshot.Protected(name)
	}
	if r == nil || r.SetValued == nil {
		return nil, nil, sqlstate.New(sqlstate.FeatureNotSupported,
			"tailor.case_count is for set-valued tables").
			WithHint("Their policy has tailor.set_valued; in other tables, count(DISTINCT ...) counts.").
			At(b.statement, int(literal.Location))
	}
	return r, literal, nil
}

// relationArgument is the literal in the place of the first parameter, nil if
// something else is there.
func relationArgument(f *pg.FuncCall) *pg.A_Const {
	var argument *pg.Node
	for i, node := range f.Args {
		if named := node.GetNamedArgExpr(); named != nil {
			if named.Name == "relation" {
				argument = named.Arg
			}
		} else if i == 0 {
			argument = node
		}
	}
	for argument.GetTypeCast() != nil {
		argument = argument.GetTypeCast().Arg
	}
	if c := argument.GetAConst(); c.GetSval() != nil {
		return c
	}
	return nil
}

// qualifiedName reads a relation's name as PostgreSQL reads the text of a
// regclass: quoted parts as they are, others in lower case.
func qualifiedName(text string) (schema, relation string, ok bool) {
	var parts []string
	for rest, more := text, true; more; {
		var part string
		rest = strings.TrimLeft(rest, " \t\n\r\f")
		if quoted, isQuoted := strings.CutPrefix(rest, `"`); isQuoted {
			if part, rest, ok = unquoted(quoted); !ok {
				return "", "", false
			}
			rest = strings.TrimLeft(rest, " \t\n\r\f")
			if rest, more = strings.CutPrefix(rest, "."); !more && rest != "" {
				return "", "", false
			}
		} else {
			part, rest, more = strings.Cut(rest, ".")
			part = lowerASCII(strings.TrimRight(part, " \t\n\r\f"))
			if strings.ContainsAny(part, " \t\n\r\f\"") {
				return "", "", false
			}
		}
		if part == "" {
			return "", "", false
		}
		parts = append(parts, part)
	}
	switch len(parts) {
	case 1:
		return "", parts[0], true
	case 2:
		return parts[0], parts[1], true
	}
	return "", "", false
}

// unquoted reads a quoted name up to its closing quote.
func unquoted(text string) (name, rest string, ok bool) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, `"`)
		if !found {
			return "", "", false
		}
		out.WriteString(before)
		if !strings.HasPrefix(after, `"`) {
			return out.String(), after, true
		}
		out.WriteByte('"')
		text = after[1:]
	}
}

// lowerASCII folds as PostgreSQL folds names in multi-byte encodings.
func lowerASCII(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

// caseCount binds a call of tailor.case_count.
func (b *binder) caseCount(f *pg.FuncCall, sc *scope, place ecg.Place) error {
	if f.AggDistinct || f.AggFilter != nil || f.Over != nil || f.AggOrder != nil || f.AggWithinGroup {
		return sqlstate.New(sqlstate.FeatureNotSupported, "tailor.case_count is no aggregate function").
			WithHint("It takes its arguments, and nothing behind or among them.").
			At(b.statement, int(f.Location))
	}
	r, literal, err := b.countedRelation(f)
	if err != nil {
		return err
	}
	condition, _, _ := b.conditionArgument(f)
	for _, arg := range f.Args {
		if arg == condition {
			continue
		}
		if err := b.expression(arg, sc, place); err != nil {
			return err
		}
	}
	if err := b.read(r, int(literal.Location)); err != nil {
		return err
	}
	at := b.tokenAt(int(literal.Location))
	if at == len(b.tokens) || int(b.tokens[at].Start) != int(literal.Location) ||
		b.tokens[at].Token != pg.Token_SCONST {
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"the name of the table of tailor.case_count must be written plainly").
			WithHint("For example, 'public.diagnoses'.").At(b.statement, int(literal.Location))
	}
	first, end := int(literal.Location), int(b.tokens[at].End)
	err = b.edit(edit{start: first, end: end, relation: r, literal: true})
	if err != nil || condition == nil {
		return err
	}
	return b.countUnder(f, r, place)
}

// conditionArgument is the third argument of a call, or the one that is named condition, and
// where it stands in the text, without its name. nil for none.
func (b *binder) conditionArgument(f *pg.FuncCall) (node *pg.Node, first, end int) {
	nth := slices.IndexFunc(f.Args, func(n *pg.Node) bool {
		return n.GetNamedArgExpr().GetName() == "condition"
	})
	switch {
	case nth < 0 && (len(f.Args) < 3 || f.Args[2].GetNamedArgExpr() != nil):
		return nil, 0, 0
	case nth < 0:
		nth = 2
	}
	open := b.opening(f)
	closing := b.closing(open)
	ends := slices.Concat([]int{open}, b.commas(open, closing), []int{closing})
	begin := ends[nth] + 1
	if f.Args[nth].GetNamedArgExpr() != nil {
		begin += 2 // condition =>
	}
	return f.Args[nth], int(b.tokens[begin].Start), int(b.tokens[ends[nth+1]-1].End)
}

// countUnder puts in place of a condition what it says of each group of the publication: the
// share of its people who meet it by their values, whether by the labels all do, and whether
// one may.
func (b *binder) countUnder(f *pg.FuncCall, codes *catalog.Relation, place ecg.Place) error {
	condition, first, end := b.conditionArgument(f)
	parent := b.snapshot.Referred(codes)
	if !codes.IsJoint() || !codes.Lent() || parent == nil || parent.AggregateOnly {
		refusal := sqlstate.New(sqlstate.FeatureNotSupported,
			"the codes of %q are published without their subjects' columns", codes.Name)
		hint := "Leave the condition out."
		if parent != nil {
			hint = published(codes, parent)
		}
		return refusal.WithHint("%s", hint).At(b.statement, first)
	}
	if named := condition.GetNamedArgExpr(); named != nil {
		condition = named.Arg
	}
	e := releaseEntry(parent, &pg.RangeVar{}, parent.Name, parent.Schema)
	jointEntry(e, codes)
	e.grouped = true
	groups := &scope{entries: []*entry{e}}
	judged, err := judge{binder: b, call: f, scope: groups, place: place}.condition(condition, false)
	if err != nil {
		return err
	}
	group, alias := catalog.FamilyColumn, " AS "+quoted(e.alias)
	parts := slices.Concat(
		words("ARRAY(SELECT ARRAY["+group+", tailor_label_share, COALESCE("), judged.certain,
		words(", false)::pg_catalog.int4, COALESCE("), judged.possible,
		words(", false)::pg_catalog.int4] FROM (SELECT "+group+", pg_catalog.avg(CASE WHEN "))
	if err := b.editAt(first, parts); err != nil {
		return err
	}
	if err := b.expression(condition, groups, place); err != nil {
		return err
	}
	b.plan.lends(parent)
	b.plan.joins(codes)
	return b.editAt(end, []edit{
		{text: "THEN 1 ELSE 0 END)::pg_catalog.float8 AS tailor_label_share FROM"},
		{relation: codes, parent: true, text: alias + " GROUP BY 1) AS tailor_label_met JOIN"},
		{relation: codes, labels: true, text: alias + " USING (" + group + "))"},
	})
}

// read notes that the statement at hand reads a protected relation. It ends one
// that reads a set-valued relation beside another: each release is safe by
// itself, but the subjects of a publication are nobody's, so that a join would
// look like an answer and be none.
func (b *binder) read(r *catalog.Relation, at int) error {
	b.plan.reads(r)
	b.reading = append(b.reading, r)
	for _, set := range b.reading {
		for _, other := range b.reading {
			if set.SetValued != nil && other != set && b.wish != "" {
				return sqlstate.New(sqlstate.FeatureNotSupported,
					"the set-valued table %q cannot be read together with the protected table %q", set.Name,
					other.Name).
					WithHint("What is asked of each subject's codes beside other rows is in no release of a "+
						"table. %s", b.wish).At(b.statement, at)
			}
			if set.SetValued != nil && other != set {
				return sqlstate.New(sqlstate.FeatureNotSupported,
					"the set-valued table %q cannot be read together with the protected table %q", set.Name,
					other.Name).
					WithHint("Its subjects are published under random numbers that %q does not have. %s",
						other.Name, published(set, other)).
					At(b.statement, at)
			}
		}
	}
	return nil
}

// published says what to do where codes are not published together with another relation.
func published(set, other *catalog.Relation) string {
	if set.IsJoint() || !slices.Contains(set.References, other.OID) {
		return "Ask each table by itself."
	}
	var columns []string
	for _, q := range other.QuasiIdentifiers() {
		columns = append(columns, fmt.Sprintf("'%s'", q.Name))
	}
	return fmt.Sprintf("Ask each table by itself; or a database administrator has both published "+
		"together, with those of these columns that matter most: "+
		"CALL tailor.joint('%s', ARRAY[%s]), then tailor.activate.", set, strings.Join(columns, ", "))
}
