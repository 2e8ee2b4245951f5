package planner

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// What is asked of each subject's rows in another table (EXISTS, NOT EXISTS, IN, a count, a
// sum) no release tells: it is computed by the owner of the tables, declared as a column of a
// data set, and released as part of the payload. A subquery that says the same as such a
// column is answered by it. So nothing is counted at query time, and the client's text need
// not name the data set. Both are compared in one form (canonical.go).

// derivedAlias is the name of a data set where a column of it stands for a subquery.
const derivedAlias = "tailor_own_set"

// derived answers a subquery along the key by the column of a data set that says the same,
// and says whether there is one. If there is none, it notes the data set to be declared.
func (b *binder) derived(s *pg.SubLink, sc *scope) (bool, error) {
	if b.forms >= maxForms || !b.mayDerive(s, sc) {
		return false, nil
	}
	b.forms++
	form, ok := b.canonicalSubLink(
		s,
		func(qualifier, name string) *outerTable { return b.outerSubject(sc, qualifier, name) },
	)
	if !ok {
		visit(s.Subselect, func(*pg.ParamRef) {
			b.wish = "Data sets answer conditions with the values that they were declared for: write the " +
				"value itself in place of its parameter."
		})
		return false, nil
	}
	root := form.outer.root
	if form.unsure && form.outer.entry.nullable {
		return false, nil
	}
	has := false
	for _, set := range b.snapshot.DataSets(root) {
		columns := b.derivedColumns(set, root)
		text := columns[form.text]
		if count := columns[form.counting]; text == "" && count != "" && form.exists {
			text = count + " > 0"
			if form.having != "" {
				text += " AND " + count + form.having
			}
		}
		has = has || text != ""
		if text == "" || form.outer.entry == nil || !b.family[form.outer.entry.relation] {
			continue
		}
		return true, b.replaceSubLink(s, form, set, text)
	}
	if !has {
		b.wish = b.wished(root, form)
	}
	return false, nil
}

// Forms are written by the parser's library, whose stack a deep tree overflows, and each
// takes a multiple of its length.
const (
	maxForms      = 100 // of one text, with those of data sets
	maxFormTokens = 256
	maxSetTokens  = 2000 // of the query of a data set
)

// mayDerive says whether a subquery is short, and reads a protected table with several
// rows a subject.
func (b *binder) mayDerive(s *pg.SubLink, sc *scope) bool {
	query := s.Subselect.GetSelectStmt()
	if query == nil || len(query.FromClause) == 0 {
		return false
	}
	open := b.tokenAt(int(s.Location))
	for open < len(b.tokens) && b.tokens[open].Token != pg.Token_ASCII_40 {
		open++
	}
	if open == len(b.tokens) || b.closing(open)-open > maxFormTokens {
		return false
	}
	reads, hidden := false, false
	visit(s.Subselect, func(rv *pg.RangeVar) {
		_, isCTE := sc.cte(rv.Relname)
		hidden = hidden || isCTE && rv.Schemaname == ""
		if name, err := b.relationName(rv); err == nil && !reads {
			r := b.snapshot.Protected(name)
			reads = r != nil && len(r.References) > 0
		}
	})
	return reads && !hidden
}

// outerTable is the relation of subjects that a subquery depends on.
type outerTable struct {
	entry *entry // nil in the query of a data set
	root  *catalog.Relation
	key   string // as the entry's columns name it
	alias string
}

// outerSubject finds the entry whose rows are subjects, by a column that a subquery names
// outside of itself; nil if the name is, or can be, another entry's.
func (b *binder) outerSubject(sc *scope, qualifier, name string) *outerTable {
	for at := sc; at != nil; at = at.parent {
		var found *entry
		for _, e := range at.entries {
			has := e.alias == qualifier
			if qualifier == "" {
				has = !e.known || e.find(name) >= 0 ||
					e.relation != nil && e.relation.Column(name) != nil
			}
			if has && found != nil {
				return nil
			}
			if has {
				found = e
			}
		}
		if found != nil {
			return b.subjectsOf(found, sc)
		}
	}
	return nil
}

// subjectsOf is an entry with a row for each subject; nil if it is none, or if its alias
// means another entry in a scope.
func (b *binder) subjectsOf(e *entry, sc *scope) *outerTable {
	if e.relation == nil || e.via != nil || e.query != nil || !sc.reaches(e) {
		return nil
	}
	root := b.snapshot.Rooted(e.relation)
	if root == nil || root.SetValued != nil || !root.OneRow {
		return nil
	}
	key := e.relation.Subject
	if b.family[e.relation] {
		key = e.columns[0].name
	}
	return &outerTable{entry: e, root: root, key: key, alias: e.alias}
}

// derivedColumns are the columns of a data set by what they say of each subject, quoted: of
// one that has everybody, and whose query asks nothing but subqueries of a subject's rows.
// A column that may be withheld in some blocks says it of the others alone.
func (b *binder) derivedColumns(set, root *catalog.Relation) map[string]string {
	if known, ok := b.derivations[set]; ok {
		return known
	}
	out := make(map[string]string)
	if b.derivations == nil {
		b.derivations = make(map[*catalog.Relation]map[string]string)
	}
	b.derivations[set] = out
	if b.forms >= maxForms {
		return out
	}
	text, tokens, err := scanBounded(set.Query)
	if err != nil || len(tokens) > maxSetTokens {
		return out
	}
	b.forms += 1 + len(tokens)/maxFormTokens // it is as much work as forms of its length
	tree, err := pg.Parse(text)
	if err != nil || len(tree.Stmts) != 1 {
		return out
	}
	s := tree.Stmts[0].Stmt.GetSelectStmt()
	if s == nil || len(s.FromClause) != 1 || s.WhereClause != nil || len(s.GroupClause) > 0 ||
		s.HavingClause != nil ||
		s.LimitCount != nil || s.LimitOffset != nil || len(s.DistinctClause) > 0 ||
		s.WithClause != nil ||
		s.Op != pg.SetOperation_SETOP_NONE {
		return out
	}
	rv := s.FromClause[0].GetRangeVar()
	if rv == nil || rv.Alias.GetColnames() != nil {
		return out
	}
	session := b.session
	defer func() { b.session = session }()
	b.session.SearchPath, b.session.Temporary = []string{"pg_catalog", set.Schema, root.Schema}, nil
	if name, err := b.relationName(rv); err != nil || b.snapshot.Protected(name) != root {
		return out
	}
	alias := rv.Relname
	if rv.Alias != nil {
		alias = rv.Alias.Aliasname
	}
	outer := &outerTable{root: root, key: root.Subject, alias: alias}
	for _, node := range s.TargetList {
		target := node.GetResTarget()
		link := target.GetVal().GetSubLink()
		column := set.Column(target.GetName())
		if link == nil || column == nil || !column.IsPayload() {
			continue
		}
		withheld := func(q catalog.Requirement) bool { return q.Column == column.Name }
		if root.BlindCuts && slices.ContainsFunc(set.Requirements, withheld) {
			continue
		}
		form, ok := b.canonicalSubLink(link, func(qualifier, name string) *outerTable {
			if qualifier == alias || qualifier == "" && root.Column(name) != nil {
				return outer
			}
			return nil
		})
		if ok {
			out[form.text] = derivedAlias + "." + quoted(column.Name)
		}
	}
	return out
}

// replaceSubLink puts a data set's column in place of a subquery: that of the row with the
// same number. What is not shown there of a subject is not known, and NULL.
func (b *binder) replaceSubLink(
	s *pg.SubLink,
	form *canonical,
	set *catalog.Relation,
	column string,
) error {
	at := int(s.Location)
	open := b.tokenAt(at)
	from := at
	not := ""
	if s.SubLinkType == pg.SubLinkType_ANY_SUBLINK {
		key := s.Testexpr.GetColumnRef()
		from = int(key.Location)
		if b.tokenAt(from)+2*len(key.Fields)-1 != open {
			return b.unsupported(s.Testexpr) // it stands between parentheses
		}
		if t := b.tokens[open].Token; t == pg.Token_NOT || t == pg.Token_NOT_LA {
			not = "NOT "
		}
	}
	for open < len(b.tokens) && b.tokens[open].Token != pg.Token_ASCII_40 {
		open++
	}
	if open == len(b.tokens) {
		return b.unsupported(s.Subselect)
	}
	end := int(b.tokens[b.closing(open)].End)
	if err := b.read(set, at); err != nil {
		return err
	}
	key := quoted(form.outer.alias) + "." + quoted(form.outer.key)
	head := fmt.Sprintf("(CASE WHEN %s IS NOT NULL THEN %s(SELECT %s FROM", key, not, column)
	if err := b.insert(from, head); err != nil {
		return err
	}
	tail := fmt.Sprintf(" AS %[1]s WHERE %[1]s.%[2]s OPERATOR(pg_catalog.=) %[3]s)",
		derivedAlias, quoted(set.Subject), key)
	if form.otherwise != "" {
		tail += " ELSE " + form.otherwise
	}
	return b.edit(edit{start: from, end: end, relation: set, family: true, text: tail + " END)"})
}

// thenAnswered ends the hint of a refusal that a data set mends.
const thenAnswered = " Then the subquery is answered as it stands."

// wished is the data set that would answer a subquery, as the owner of the tables would
// declare it. It has the client's own condition, and is for the client alone.
func (b *binder) wished(root *catalog.Relation, form *canonical) string {
	if b.views > 0 {
		return "" // the condition is not the client's
	}
	if form.outerQID != "" {
		return fmt.Sprintf("Write the condition on %q outside of the subquery: as a column of a data "+
			"set it would tell more of it than labels do.", form.outerQID)
	}
	child := form.children[0]
	column, text, then := child.Name, form.text, thenAnswered
	switch {
	case form.exists && form.having != "" && form.counting != "":
		text = form.counting
	case form.exists:
		column = "any_" + child.Name
	case !form.counts:
		column = child.Name + "_value"
		then += fmt.Sprintf(" If it is much the same as what %q shows, activation asks the owner for "+
			"tailor.shared_fact.", child.Name)
	}
	return "It is read from a data set, which the owner of the tables declares: " +
		b.declaration(
			root.Schema,
			root.Name,
			root.Subject,
			child.Name,
			column,
			text,
		) + then
}
