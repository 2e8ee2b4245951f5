package planner

import (
	"errors"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Session is what a statement's meaning depends on besides its text.
type Session struct {
	// SearchPath are the schemas in which unqualified names are looked up.
	SearchPath []string
	// Values asks for quasi-identifiers as values of their own type where the
	// default is their labels (tailor.representation = 'value').
	Values bool
}

// Plan is what is to happen to a statement that may run. It is immutable and
// may be kept for the same text, session and snapshot.
type Plan struct {
	// Relations are the protected relations that the statement reads, in the
	// order of their first appearance. None: the text is forwarded as it is.
	Relations []*catalog.Relation
	// Uses are the quasi-identifiers that can influence the answer.
	Uses []ecg.Use
	// Explain is the format in which the tailor's account of the query is asked
	// for in place of its answer: text, json, mermaid or dot; "" for none.
	Explain string

	statement string
	edits     []edit
}

// Passes says that the statement concerns no protected relation.
func (p *Plan) Passes() bool { return len(p.Relations) == 0 && p.Explain == "" }

// Make plans the text of a simple query or of a prepared statement. Errors are
// of type *[sqlstate.Error] and quote neither values nor literals.
func Make(statement string, session Session, snapshot *catalog.Snapshot) (*Plan, error) {
	if !snapshot.MayConcern(statement) {
		return &Plan{statement: statement}, nil
	}
	tokens, err := scanBounded(statement)
	if err != nil {
		return nil, err
	}
	tree, err := pg.Parse(statement)
	if err != nil {
		return nil, parseError(statement, err)
	}
	b := &binder{
		plan: &Plan{statement: statement}, statement: statement, tokens: tokens,
		session: session, snapshot: snapshot, at: -1,
	}
	changed := false
	for _, s := range tree.Stmts {
		if asksTailor(s.Stmt) {
			if err := b.explain(s.Stmt.GetExplainStmt(), len(tree.Stmts) == 1); err != nil {
				return nil, err
			}
			return &Plan{Explain: b.plan.Explain, Relations: b.plan.Relations, Uses: b.plan.Uses}, nil
		}
		if err := b.statementPlan(s, changed); err != nil {
			return nil, err
		}
		changed = changed || changesSettings(s.Stmt)
	}
	if err := b.addLabels(); err != nil {
		return nil, err
	}
	if err := b.expandStars(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(b.plan.edits, func(x, y edit) int { return x.start - y.start })
	return b.plan, nil
}

// parseError is PostgreSQL's own syntax error with its position. The parser's
// message may quote a literal of the statement, so only its kind is kept.
func parseError(statement string, err error) error {
	out := sqlstate.New(sqlstate.SyntaxError, "syntax error")
	var detail *parser.Error
	if errors.As(err, &detail) {
		if strings.HasPrefix(detail.Message, "syntax error at end of input") {
			out.Message = "syntax error at end of input"
		}
		out.Position = detail.Cursorpos
	}
	return out.Wrap(err)
}

// statementPlan plans one statement of the text. changed says that one before
// it can change settings.
func (b *binder) statementPlan(s *pg.RawStmt, changed bool) error {
	concerned, err := b.concerned(s.Stmt)
	if err != nil || concerned == nil {
		return err
	}
	for _, t := range b.tokens {
		if t.Token == pg.Token_UIDENT || t.Token == pg.Token_USCONST {
			// The scanner does not know where they end.
			return sqlstate.New(sqlstate.FeatureNotSupported, "Unicode escapes (U&) are not supported beside a protected table").
				WithHint("Write the characters themselves.").At(b.statement, int(t.Start))
		}
	}
	query := s.Stmt.GetSelectStmt()
	if query == nil {
		return b.refuseStatement(s.Stmt, concerned)
	}
	b.reading = nil
	if changed {
		return b.refuseAfterChange(int(s.StmtLocation))
	}
	bound, err := b.selectStmt(query, nil, true)
	if err != nil {
		return err
	}
	start, end := int(s.StmtLocation), int(s.StmtLocation+s.StmtLen)
	if s.StmtLen == 0 {
		end = len(b.statement)
	}
	return b.showLabels(bound, start, end)
}

// concerned is the first protected relation that a statement names, nil if it
// names none.
func (b *binder) concerned(stmt *pg.Node) (*catalog.Relation, error) {
	var concerned *catalog.Relation
	for _, rv := range rangeVars(stmt) {
		name, err := b.relationName(rv)
		if err != nil {
			return nil, err
		}
		if r := b.snapshot.Protected(name); r != nil && concerned == nil {
			concerned = r
		}
	}
	for _, f := range b.caseCounts(stmt) {
		r, _, err := b.countedRelation(f)
		if err != nil {
			return nil, err
		}
		if concerned == nil {
			concerned = r
		}
	}
	return concerned, nil
}

// refuseStatement says why a statement other than SELECT may not name a
// protected relation.
func (b *binder) refuseStatement(stmt *pg.Node, r *catalog.Relation) error {
	switch stmt.Node.(type) {
	case *pg.Node_ExplainStmt, *pg.Node_PrepareStmt, *pg.Node_DeclareCursorStmt, *pg.Node_CreateTableAsStmt:
		return sqlstate.New(sqlstate.FeatureNotSupported, "only SELECT can read the protected table %q", r.Name).
			WithHint("Send the SELECT on its own, or prepare it with the driver's own prepared statements.")
	}
	if c := stmt.GetCopyStmt(); c != nil && c.Query != nil {
		return sqlstate.New(sqlstate.FeatureNotSupported, "COPY cannot read the protected table %q", r.Name).
			WithHint(`In psql, "\g file.csv" after "\pset format csv" writes an answer to a file.`)
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, "this statement is not permitted on the protected table %q", r.Name).
		WithHint("Readers may use protected tables in SELECT.")
}

// reads records a protected relation among those that the plan reads.
func (p *Plan) reads(r *catalog.Relation) {
	if !slices.Contains(p.Relations, r) {
		p.Relations = append(p.Relations, r)
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
		if use.Condition != "" && !strings.Contains(known.Condition, use.Condition) && len(known.Condition) < longestFragment {
			known.Condition = strings.TrimPrefix(known.Condition+"; "+use.Condition, "; ")
		}
		return
	}
	p.Uses = append(p.Uses, use)
}
