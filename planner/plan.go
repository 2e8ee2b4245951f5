package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Session is what a statement's meaning depends on besides its text.
type Session struct {
	// Database is the one that the session is connected with.
	Database string
	// SearchPath are the schemas in which unqualified names are looked up.
	SearchPath []string
	// Values asks for quasi-identifiers as values of their own type where the
	// default is their labels (tailor.representation = 'value').
	Values bool
	// Temporary are the columns of the session's temporary relations by name.
	Temporary map[string][]string
}

// Plan is what is to happen to a statement that may run. It is immutable and
// may be kept for the same text, session and snapshot.
type Plan struct {
	// Relations are the protected relations that the statement reads, in the
	// order of their first appearance. None: the text is forwarded as it is.
	Relations []*catalog.Relation
	// Parents are protected relations of which the statement reads only what
	// releases of others show of them.
	Parents []*catalog.Relation
	// Joined are the relations whose releases show them.
	Joined []*catalog.Relation
	// Counted are relations whose number of subjects stands in the rewritten text.
	Counted []*catalog.Relation
	// Uses are the quasi-identifiers that can influence the answer.
	Uses []ecg.Use
	// Asked are the uses as a text, the same for plans with the same uses.
	Asked string
	// Outputs classifies the output columns of the statements that read them.
	Outputs []Output
	// Cursors are declared by the text.
	Cursors []Cursor
	// Prepares is the name under which the text prepares a query over releases;
	// it reads nothing yet. "" for none.
	Prepares string
	// Explain is the format in which the tailor's account of the query is asked
	// for in place of its answer: text, json, mermaid or dot; "" for none.
	Explain string
	// OneQuery says that the text is one SELECT without parameters and nothing else.
	OneQuery bool

	text *source
}

// Passes says that the statement concerns no protected relation.
func (p *Plan) Passes() bool { return len(p.Relations) == 0 && p.Explain == "" }

// Make plans the text of a simple query or of a prepared statement. Errors are
// of type *[sqlstate.Error] and quote neither values nor literals.
func Make(statement string, session Session, snapshot *catalog.Snapshot) (*Plan, error) {
	if !snapshot.MayConcern(statement) {
		return &Plan{text: &source{statement: statement}}, nil
	}
	if !utf8.ValidString(statement) {
		return nil, sqlstate.New(sqlstate.FeatureNotSupported,
			"a text about a protected table is not in UTF-8").
			WithHint("SET client_encoding = 'UTF8', or leave characters beyond ASCII out of it.")
	}
	text, tokens, err := scanBounded(statement)
	if err != nil {
		return nil, err
	}
	tree, err := pg.Parse(text)
	if err != nil {
		return nil, parseError(err)
	}
	plan, err := bind(text, tokens, tree, session, snapshot, false)
	if err == nil {
		return plan, nil
	}
	return otherwise(text, tokens, session, snapshot, err)
}

// otherwise plans a refused text in ways that data sets may answer, and has the refusal that
// names one where none does.
func otherwise(
	text string, tokens []*pg.ScanToken, session Session, snapshot *catalog.Snapshot, refused error,
) (*Plan, error) {
	var refusal *sqlstate.Error
	tree, err := pg.Parse(text)
	if err != nil || !errors.As(refused, &refusal) {
		return nil, refused
	}
	plan, err := planAlongTheKey(tokens, tree, session, snapshot)
	if plan == nil && err == nil && !snapshot.WithoutJoint() {
		// What codes and their parent do not tell together, data sets may tell beside the parent.
		plan, err = bind(text, tokens, tree, session, snapshot, true)
	}
	switch {
	case err == nil && plan != nil &&
		slices.ContainsFunc(plan.Relations, (*catalog.Relation).IsDataSet):
		return plan, nil
	case strings.Contains(hintOf(err), thenAnswered):
		refusal.Hint = hintOf(err)
	}
	return nil, refusal
}

// hintOf is the hint of a refusal.
func hintOf(err error) string {
	var refusal *sqlstate.Error
	if errors.As(err, &refusal) {
		return refusal.Hint
	}
	return ""
}

// bind plans a parsed text. apart says that codes are not read together with their parent.
func bind(
	statement string, tokens []*pg.ScanToken, tree *pg.ParseResult, session Session,
	snapshot *catalog.Snapshot, apart bool,
) (*Plan, error) {
	text := &source{statement: statement, tokens: tokens}
	b := &binder{
		source: text, plan: &Plan{text: text}, session: session, snapshot: snapshot,
		sources: []*source{text}, bytes: len(statement), at: -1, alone: len(tree.Stmts) == 1,
		keyed: newKeyed(), apart: apart,
	}
	changed := false
	for _, s := range tree.Stmts {
		if asksTailor(s.Stmt) {
			if err := b.explain(s.Stmt.GetExplainStmt(), len(tree.Stmts) == 1); err != nil {
				return nil, err
			}
			return &Plan{
				Explain: b.plan.Explain, Relations: b.plan.Relations, Parents: b.plan.Parents,
				Uses: b.plan.Uses,
			}, nil
		}
		found := collectNodes(s.Stmt)
		if err := b.statementPlan(s, found, changed); err != nil {
			return nil, err
		}
		changed = changed || changesSettings(s.Stmt, found)
	}
	b.plan.OneQuery = len(tree.Stmts) == 1 && oneQuery(tree.Stmts[0].Stmt, tokens)
	if err := b.assertAlone(tree.Stmts); err != nil {
		return nil, err
	}
	if err := b.assertNothingElseRuns(tree.Stmts); err != nil {
		return nil, err
	}
	if err := b.addLabels(); err != nil {
		return nil, err
	}
	if err := b.expandStars(); err != nil {
		return nil, err
	}
	for _, s := range b.sources {
		s.finish()
	}
	b.plan.Asked = fmt.Sprint(b.plan.Uses)
	return b.plan, nil
}

// oneQuery says that a statement is a SELECT that keeps nothing and has no
// parameters.
func oneQuery(stmt *pg.Node, tokens []*pg.ScanToken) bool {
	query := stmt.GetSelectStmt()
	return query != nil && intoOf(query) == nil &&
		!slices.ContainsFunc(tokens, func(t *pg.ScanToken) bool { return t.Token == pg.Token_PARAM })
}

// parseError is PostgreSQL's own syntax error with its position. The parser's
// message may quote a literal of the statement, so only its kind is kept, for the
// log as well.
func parseError(err error) error {
	out := sqlstate.New(sqlstate.SyntaxError, "syntax error")
	var detail *parser.Error
	if errors.As(err, &detail) {
		if strings.HasPrefix(detail.Message, "syntax error at end of input") {
			out.Message = "syntax error at end of input"
		}
		out.Position = detail.Cursorpos
	}
	return out
}

// scanError is PostgreSQL's own error about a text that is no sequence of tokens,
// without the rest of the text, which it quotes, for the log as well.
func scanError(err error) error {
	out := sqlstate.New(sqlstate.SyntaxError, "the statement cannot be split into tokens")
	var detail *parser.Error
	if errors.As(err, &detail) {
		out.Message, _, _ = strings.Cut(detail.Message, " at or near ")
		out.Position = detail.Cursorpos
	}
	return out
}

// statementPlan plans one statement of the text. changed says that one before
// it can change settings.
func (b *binder) statementPlan(s *pg.RawStmt, found nodeCollector, changed bool) error {
	start, end := int(s.StmtLocation), int(s.StmtLocation+s.StmtLen)
	if s.StmtLen == 0 {
		end = len(b.statement)
	}
	concerned, err := b.concerned(found)
	if err != nil || concerned == "" {
		return err
	}
	for _, t := range b.tokens {
		if t.Token == pg.Token_UIDENT || t.Token == pg.Token_USCONST {
			// The scanner does not know where they end.
			return sqlstate.New(sqlstate.FeatureNotSupported,
				"Unicode escapes (U&) are not supported beside a protected table").
				WithHint("Write the characters themselves.").At(b.statement, int(t.Start))
		}
		if t.Token == pg.Token_NCHAR && strings.HasPrefix(b.statement[t.Start+1:], "'") {
			// With a backslash in it, it could not be written as E'…'.
			return sqlstate.New(sqlstate.FeatureNotSupported,
				"national strings (N'…') are not supported beside a protected table").
				WithHint("Leave the N out.").At(b.statement, int(t.Start))
		}
	}
	if err := b.assertNoLabels(); err != nil {
		return err
	}
	c, err := b.commandOf(s, start, end)
	if err != nil {
		return err
	}
	if c == nil || c.query == nil {
		return b.refuseStatement(s.Stmt, concerned)
	}
	if changed {
		return b.refuseAfterChange(start)
	}
	b.keeps, b.reading = c.kept, nil
	b.family = b.readAsFamily(found)
	if b.joint = nil; !b.apart {
		b.joint = b.readJointly(found)
	}
	bound, err := b.selectStmt(c.query, nil, true)
	if err != nil {
		return err
	}
	if c.kept { // what is asked of the rows later is not seen
		bound.forgetLabels()
		b.decidesAll(bound)
	}
	if !c.explains {
		b.plan.classify(bound)
	}
	return b.showLabels(bound, c.start, c.end)
}

// concerned names the first relation of a statement that is protected, or a
// view over one; empty for none. The target of a statement that makes a
// temporary table is none of them.
func (b *binder) concerned(found nodeCollector) (string, error) {
	first := ""
	for _, rv := range found.relations {
		if rv.Relpersistence == "t" {
			continue
		}
		name, err := b.relationName(rv)
		if err != nil {
			return "", err
		}
		if first == "" && b.protects(name) {
			first = name.Name
		}
	}
	for _, f := range found.calls {
		if !b.isCaseCount(f) {
			continue
		}
		r, _, err := b.countedRelation(f)
		if err != nil {
			return "", err
		}
		if first == "" {
			first = r.Name
		}
	}
	return first, nil
}

// protects says whether a name stands for protected rows.
func (b *binder) protects(name catalog.Name) bool {
	o := b.snapshot.Other(name)
	return b.snapshot.Protected(name) != nil || (o != nil && o.Reaches != "")
}

// refuseStatement says why a statement may not name a protected relation.
func (b *binder) refuseStatement(stmt *pg.Node, relation string) error {
	switch stmt.Node.(type) {
	case *pg.Node_ExplainStmt:
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"EXPLAIN of this statement cannot read the protected table %q", relation).
			WithHint("EXPLAIN of a SELECT is answered, where the policy lets rows be shown; EXPLAIN " +
				"(TAILOR) shows what Tailor does.")
	case *pg.Node_PrepareStmt:
		return sqlstate.New(sqlstate.FeatureNotSupported, "PREPARE cannot read the protected table %q",
			relation).
			WithHint("SELECT can be prepared; a statement that writes cannot be made over a release.")
	case *pg.Node_DeclareCursorStmt, *pg.Node_CreateTableAsStmt:
		return sqlstate.New(sqlstate.FeatureNotSupported, "only SELECT can read the protected table %q",
			relation).
			WithHint("A materialized view, or a statement that writes, cannot be made over a release.")
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege,
		"this statement is not permitted on the protected table %q", relation).
		WithHint("Readers may use protected tables in SELECT, in COPY (SELECT ...) TO STDOUT and in " +
			"CREATE TEMP TABLE ... AS SELECT.")
}

// reads records a protected relation among those that the plan reads.
func (p *Plan) reads(r *catalog.Relation) {
	if !slices.Contains(p.Relations, r) {
		p.Relations = append(p.Relations, r)
	}
}

// lends records a protected relation of which a release of another is read.
func (p *Plan) lends(r *catalog.Relation) {
	if !slices.Contains(p.Parents, r) {
		p.Parents = append(p.Parents, r)
	}
}

// joins records a relation whose release shows another.
func (p *Plan) joins(child *catalog.Relation) {
	if !slices.Contains(p.Joined, child) {
		p.Joined = append(p.Joined, child)
	}
}

// note records the use of a quasi-identifier. One that is used several times in
// one place has several conditions there.
func (p *Plan) note(use ecg.Use) {
	for i := range p.Uses {
		known := &p.Uses[i]
		if known.Place != use.Place || known.Table != use.Table || known.Attribute != use.Attribute {
			continue
		}
		if use.Condition != "" && !strings.Contains(known.Condition, use.Condition) &&
			len(known.Condition) < longestFragment {
			known.Condition = strings.TrimPrefix(known.Condition+"; "+use.Condition, "; ")
		}
		known.Exactly = known.Exactly || use.Exactly
		known.Bounds = withBounds(known.Bounds, use.Bounds)
		return
	}
	p.Uses = append(p.Uses, use)
}
