package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Execution is a text with EXECUTE in it. Where that runs a statement over
// protected tables, the statement is put in its place, its arguments in place
// of parameters, and the outcome is planned like any other text. So nothing of
// what may be read rests on what is put in place of what.
type Execution struct {
	source *source
	calls  []call
}

// call is an EXECUTE.
type call struct {
	name       string
	start, end int // from EXECUTE to the end of its arguments
	arguments  []argument
}

// argument is an expression. A steady one is the same wherever it stands.
type argument struct {
	start  int
	text   string
	steady bool
}

// mostExecutions bounds those of one text.
const mostExecutions = 16

// ExecutionOf tells a text that runs statements prepared by SQL. ok is false for
// any other, for one that also prepares or forgets some, and for one whose
// arguments PostgreSQL would not take.
func ExecutionOf(text string) (e *Execution, ok bool) {
	if !strings.Contains(strings.ToLower(text), "execute") {
		return nil, false
	}
	source, tree, ok := scanned(text)
	if !ok {
		return nil, false
	}
	e = &Execution{source: source}
	b := &binder{source: source}
	for _, s := range tree.Stmts {
		switch s.Stmt.GetNode().(type) {
		case *pg.Node_PrepareStmt, *pg.Node_DeallocateStmt, *pg.Node_DiscardStmt, *pg.Node_DoStmt,
			*pg.Node_CallStmt:
			return nil, false
		}
		x := executed(s.Stmt)
		if x == nil {
			continue
		}
		c, ok := b.callOf(x, int(s.StmtLocation))
		if !ok || len(e.calls) == mostExecutions {
			return nil, false
		}
		e.calls = append(e.calls, c)
	}
	return e, len(e.calls) > 0
}

// executed is the EXECUTE that a statement is, or that its query is.
func executed(stmt *pg.Node) *pg.ExecuteStmt {
	switch n := stmt.GetNode().(type) {
	case *pg.Node_ExecuteStmt:
		return n.ExecuteStmt
	case *pg.Node_ExplainStmt:
		return executed(n.ExplainStmt.Query)
	case *pg.Node_CreateTableAsStmt:
		return executed(n.CreateTableAsStmt.Query)
	}
	return nil
}

// callOf finds the text of an EXECUTE in the statement that starts at an offset.
func (b *binder) callOf(x *pg.ExecuteStmt, offset int) (c call, ok bool) {
	first := b.tokenAt(offset)
	at := first
	for ; at+1 < len(b.tokens); at++ {
		if b.tokens[at].Token != pg.Token_EXECUTE {
			continue
		}
		if at == first {
			break
		}
		before := b.tokens[at-1].Token
		if slices.Contains([]pg.Token{
			pg.Token_AS, pg.Token_EXPLAIN, pg.Token_ANALYZE, pg.Token_VERBOSE,
			pg.Token_ASCII_41,
		}, before) {
			break
		}
	}
	if at+1 >= len(b.tokens) {
		return c, false
	}
	c = call{name: x.Name, start: int(b.tokens[at].Start), end: int(b.tokens[at+1].End)}
	if len(x.Params) == 0 {
		return c, true
	}
	open := at + 2
	if open >= len(b.tokens) || b.tokens[open].Token != pg.Token_ASCII_40 {
		return c, false
	}
	closing := b.closing(open)
	c.end = int(b.tokens[closing].End)
	from := open + 1
	for _, to := range append(b.commas(open, closing), closing) {
		if n := len(c.arguments); n == len(x.Params) || to == from || !computable(x.Params[n]) {
			return c, false
		}
		c.arguments = append(c.arguments, argument{
			start:  int(b.tokens[from].Start),
			text:   b.statement[b.tokens[from].Start:b.tokens[to-1].End],
			steady: steady(x.Params[len(c.arguments)]),
		})
		from = to + 1
	}
	return c, len(c.arguments) == len(x.Params)
}

// commas are the indexes of the commas between two parentheses, at their depth.
func (b *binder) commas(open, closing int) (at []int) {
	depth := 0
	for i := open + 1; i < closing; i++ {
		switch b.tokens[i].Token {
		case pg.Token_ASCII_40, pg.Token_ASCII_91:
			depth++
		case pg.Token_ASCII_41, pg.Token_ASCII_93:
			depth--
		case pg.Token_ASCII_44:
			if depth == 0 {
				at = append(at, i)
			}
		}
	}
	return at
}

// computable says whether an argument is computed from nothing but itself.
func computable(node *pg.Node) bool {
	alone := true
	walk(node.ProtoReflect(), func(m proto.Message) {
		switch m.(type) {
		case *pg.ColumnRef, *pg.SubLink, *pg.ParamRef:
			alone = false
		}
	})
	return alone
}

// steady says whether an argument is the same wherever it stands in a statement.
func steady(node *pg.Node) bool {
	switch n := node.GetNode().(type) {
	case *pg.Node_AConst, *pg.Node_SqlvalueFunction:
		return true
	case *pg.Node_TypeCast:
		return steady(n.TypeCast.Arg)
	case *pg.Node_AArrayExpr:
		return !slices.ContainsFunc(n.AArrayExpr.Elements, func(e *pg.Node) bool { return !steady(e) })
	}
	return false
}

// Names are those of the statements that the text runs.
func (e *Execution) Names() []string {
	var out []string
	for _, c := range e.calls {
		out = append(out, c.name)
	}
	return out
}

// Resolve puts the statements in place of EXECUTE that were prepared over
// protected tables: one for each of the names, nil for others. What PostgreSQL
// would not run with these arguments stays as it is, for PostgreSQL to say so.
// A place in a statement maps to that of its EXECUTE, one in an argument to its
// own. The outcome is nil where nothing is put in the place of anything.
func (e *Execution) Resolve(prepared []*Prepared) (*Rewritten, error) {
	var out strings.Builder
	var parts []part
	from := 0
	for i, c := range e.calls {
		if prepared[i] == nil {
			continue
		}
		o, ok := prepared[i].open()
		if !ok || len(o.types) != len(c.arguments) {
			continue
		}
		parts = append(parts, part{at: out.Len(), source: from, copied: true})
		out.WriteString(e.source.statement[from:c.start])
		written, err := c.write(&out, o)
		if err != nil {
			return nil, err.At(e.source.statement, c.start)
		}
		parts = append(parts, written...)
		from = c.end
	}
	if parts == nil {
		return nil, nil
	}
	parts = append(parts, part{at: out.Len(), source: from, copied: true})
	out.WriteString(e.source.statement[from:])
	return &Rewritten{SQL: out.String(), parts: parts}, nil
}

// write writes a query with the arguments of a call.
func (c *call) write(out *strings.Builder, o opened) (parts []part, refusal *sqlstate.Error) {
	uses := make([]int, len(c.arguments)+1)
	for _, p := range o.params {
		uses[p.number]++
	}
	from := 0
	parts = append(parts, part{at: out.Len(), source: c.start})
	for _, p := range o.params {
		a := c.arguments[p.number-1]
		if !a.steady && uses[p.number] > 1 {
			return nil, sqlstate.New(sqlstate.FeatureNotSupported,
				"an expression cannot stand for parameter $%d, which statement %q uses more than once",
				p.number, c.name).
				WithHint("Write its value: over protected tables, arguments are put in place of parameters.")
		}
		out.WriteString(o.query[from:p.start])
		before, after := "CAST(", " AS "+o.types[p.number-1]+")"
		switch {
		case p.bare:
			before, after = "(SELECT "+before, after+" AS "+quoted(unnamed)+")"
		case !a.steady: // computed once, and not for each row
			before, after = "(SELECT "+before, after+")"
		}
		out.WriteString(before)
		parts = append(parts, part{at: out.Len(), source: a.start, copied: true})
		out.WriteString(a.text)
		parts = append(parts, part{at: out.Len(), source: c.start})
		out.WriteString(after)
		from = p.end
	}
	out.WriteString(o.query[from:])
	return parts, nil
}

// assertAlone ends a text that runs, beside statements over protected tables,
// what an earlier one has prepared or opened: it would be recorded as theirs. The
// same goes for what is prepared or opened there for later: the server keeps the
// whole text with it, whose ticket would admit it to releases when a message runs
// it.
func (b *binder) assertAlone(stmts []*pg.RawStmt) error {
	if len(stmts) < 2 || len(b.plan.Relations) == 0 {
		return nil
	}
	for _, s := range stmts {
		cursor, prepared := "", s.Stmt.GetPrepareStmt()
		if fetched, declared := s.Stmt.GetFetchStmt(), s.Stmt.GetDeclareCursorStmt(); fetched != nil {
			cursor = fetched.Portalname
		} else if declared != nil {
			cursor = declared.Portalname
		}
		stranger := cursor != "" && !slices.ContainsFunc(b.plan.Cursors, func(c Cursor) bool {
			return c.Name == cursor
		})
		if executed(s.Stmt) == nil && prepared == nil && !stranger {
			if err := b.beside(s); err != nil {
				return err
			}
			continue
		}
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"PREPARE, EXECUTE and other cursors cannot stand beside statements over protected tables").
			WithHint("Send them on their own: what they read is recorded by itself.").
			At(b.statement, b.textStart(int(s.StmtLocation)))
	}
	return nil
}
